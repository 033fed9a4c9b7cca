package calico

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// restore returns the block with the allocations put back, in the form to be stored. Every byte
// that does not belong to them stays. It returns an error if an ordinal is not free. The receiver
// does not change.
//
// As in Calico, allocations with equal attributes share one, and a new attribute goes last. A
// sequence number that another writer left behind for an ordinal is removed.
func (b block) restore(allocations []recordedAllocation) (block, error) {
	after := b
	after.allocations, after.unallocated = slices.Clone(b.allocations), slices.Clone(b.unallocated)
	after.attributes, after.readable = slices.Clone(b.attributes), slices.Clone(b.readable)
	after.sequences = maps.Clone(b.sequences)
	if after.sequences == nil {
		after.sequences = make(map[string]uint64)
	}
	after.sequence++
	var ordinals []int
	for _, a := range slices.SortedFunc(slices.Values(allocations), func(x, y recordedAllocation) int { return cmp.Compare(x.ordinal, y.ordinal) }) {
		if a.ordinal >= len(after.allocations) || after.allocations[a.ordinal] != nil {
			return block{}, fmt.Errorf("ordinal %d of block %s is not free", a.ordinal, b.cidr)
		}
		index := slices.IndexFunc(after.attributes, func(other json.RawMessage) bool { return bytes.Equal(other, []byte(a.Attribute)) })
		if index < 0 {
			index = len(after.attributes)
			after.attributes, after.readable = append(after.attributes, json.RawMessage(a.Attribute)), append(after.readable, a.attribute)
		}
		after.allocations[a.ordinal] = &index
		key := strconv.Itoa(a.ordinal)
		if delete(after.sequences, key); a.Sequence != nil {
			after.sequences[key] = *a.Sequence
		}
		ordinals = append(ordinals, a.ordinal)
	}
	after.unallocated = slices.DeleteFunc(after.unallocated, func(ordinal int) bool { return slices.Contains(ordinals, ordinal) })
	return after, after.rewrite(ordinals)
}
