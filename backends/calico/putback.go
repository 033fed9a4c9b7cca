package calico

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// restore returns the block with the allocations put back, as it would be stored:
// what is not theirs stays byte for byte. It returns an error where an ordinal is
// not free. The receiver stays as it is.
//
// The block that it was before they were released, if nobody has written it since
// and all of them come at once, is what it is then, but for the sequence number:
// that counts writes, and goes one up.
func (b block) restore(allocations []allocation) (block, error) {
	after := b
	after.allocations = slices.Clone(b.allocations)
	after.sequences = make(map[string]uint64, len(b.sequences)+len(allocations))
	for key, number := range b.sequences {
		after.sequences[key] = number
	}
	after.sequence++
	var ordinals []int
	inOrder := slices.Clone(allocations)
	slices.SortStableFunc(inOrder, func(x, y allocation) int { return cmp.Compare(x.Index, y.Index) })
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

// take allocates one ordinal, as it was. A sequence number that somebody else left
// behind there goes.
func (b *block) take(a allocation) {
	index := b.addAttribute(a)
	b.allocations[a.Ordinal] = &index
	key := strconv.Itoa(a.Ordinal)
	if delete(b.sequences, key); a.Sequence != nil {
		b.sequences[key] = *a.Sequence
	}
}

// addAttribute returns the index of an allocation's attribute: of the same that is
// there, as Calico shares them, or of a new one where it was, for which the others
// make room.
func (b *block) addAttribute(a allocation) int {
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
