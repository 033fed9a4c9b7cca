package calico

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// restore returns the block with the allocations put back, in the form that is to
// be stored. Every byte that does not belong to them stays. It returns an error if
// an ordinal is not free. The receiver does not change.
//
// If all of a release's allocations are put back at once, and no other writer has
// changed the block since, the result equals the block before the release, but for
// its sequence number: that counts writes, and goes up by one.
func (b block) restore(allocations []recordedAllocation) (block, error) {
	after := b
	after.allocations = slices.Clone(b.allocations)
	after.sequences = make(map[string]uint64, len(b.sequences)+len(allocations))
	for key, number := range b.sequences {
		after.sequences[key] = number
	}
	after.sequence++
	var ordinals []int
	inOrder := slices.Clone(allocations)
	slices.SortStableFunc(inOrder, func(x, y recordedAllocation) int { return cmp.Compare(x.Index, y.Index) })
	for _, a := range inOrder {
		if a.Ordinal >= len(after.allocations) || after.allocations[a.Ordinal] != nil {
			return block{}, fmt.Errorf("ordinal %d of block %s is not free", a.Ordinal, b.cidr)
		}
		after.take(a)
		ordinals = append(ordinals, a.Ordinal)
	}
	after.unallocated = slices.DeleteFunc(slices.Clone(b.unallocated), func(ordinal int) bool {
		return slices.Contains(ordinals, ordinal)
	})
	return after, after.rewrite(ordinals)
}

// take allocates the ordinal of one record again. A sequence number that another
// writer left behind for the ordinal is removed.
func (b *block) take(a recordedAllocation) {
	index := b.addAttribute(a)
	b.allocations[a.Ordinal] = &index
	key := strconv.Itoa(a.Ordinal)
	if delete(b.sequences, key); a.Sequence != nil {
		b.sequences[key] = *a.Sequence
	}
}

// addAttribute returns the index of the record's attribute. It reuses an equal
// attribute of the block, since Calico shares them. Otherwise it inserts the
// attribute at the index that was recorded, and moves the others up.
func (b *block) addAttribute(a recordedAllocation) int {
	raw := json.RawMessage(a.Attribute)
	same := func(other json.RawMessage) bool { return bytes.Equal(other, raw) }
	if index := slices.IndexFunc(b.attributes, same); index >= 0 {
		return index
	}
	at := min(a.Index, len(b.attributes))
	for ordinal, index := range b.allocations {
		if index != nil && *index >= at {
			moved := *index + 1
			b.allocations[ordinal] = &moved
		}
	}
	b.attributes = slices.Insert(slices.Clone(b.attributes), at, raw)
	b.readable = slices.Insert(slices.Clone(b.readable), at, a.attribute)
	return at
}
