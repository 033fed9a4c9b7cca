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

// release returns the block without the allocations of the ordinals, in the form
// to be stored. Every byte that does not belong to them stays. The receiver does
// not change.
//
// The ordinals go to the tail of the unallocated ones: the plugin takes from the
// head, and a freed address should rest. Attributes without an allocation are
// removed, and the indices of the others are adjusted.
func (b block) release(ordinals []int) (block, error) {
	after := b
	after.allocations = slices.Clone(b.allocations)
	after.unallocated = slices.Concat(b.unallocated, ordinals)
	after.sequences = maps.Clone(b.sequences)
	after.sequence++
	for _, ordinal := range ordinals {
		after.allocations[ordinal] = nil
		delete(after.sequences, strconv.Itoa(ordinal))
	}
	after.dropAttributes()
	return after, after.rewrite(ordinals)
}

// rewrite writes the fields into the stored form; the ordinals are those whose
// allocations changed. Then it decodes the result as the plugin will, and returns
// an error if that differs from the block.
func (b *block) rewrite(ordinals []int) error {
	if err := b.unambiguous(); err != nil {
		return fmt.Errorf("block %s cannot be edited: %w", b.cidr, err)
	}
	if err := b.store(ordinals); err != nil {
		return err
	}
	written, err := readBlock(b.object)
	if err != nil {
		return fmt.Errorf("the edited block %s is not valid; it was not written: %w", b.cidr, err)
	}
	if !b.equal(written) {
		return fmt.Errorf("the edited block %s decodes to other values; it was not written", b.cidr)
	}
	return nil
}

// dropAttributes removes the attributes without an allocation.
func (b *block) dropAttributes() {
	moved := make(map[int]int) // the new indices
	var raw []json.RawMessage
	var readable []attribute
	for i := range b.attributes {
		if slices.ContainsFunc(b.allocations, func(index *int) bool { return index != nil && *index == i }) {
			moved[i] = len(raw)
			raw, readable = append(raw, b.attributes[i]), append(readable, b.readable[i])
		}
	}
	for ordinal, index := range b.allocations {
		if index != nil {
			b.allocations[ordinal] = new(moved[*index])
		}
	}
	b.attributes, b.readable = raw, readable
}

// store writes the fields and the ordinals' sequence numbers into raw.
func (b *block) store(ordinals []int) error {
	allocations, err := json.Marshal(b.allocations)
	if err != nil {
		return err
	}
	unallocated, err := json.Marshal(append([]int{}, b.unallocated...)) // never null
	if err != nil {
		return err
	}
	attributes := make([][]byte, len(b.attributes)) // encoding/json would write other bytes
	for i, raw := range b.attributes {
		attributes[i] = raw
	}
	for _, field := range []struct {
		name  string
		value []byte
	}{
		{"allocations", allocations},
		{"unallocated", unallocated},
		{"attributes", slices.Concat([]byte("["), bytes.Join(attributes, []byte(",")), []byte("]"))},
		{"sequenceNumber", strconv.AppendUint(nil, b.sequence, 10)},
	} {
		if err := b.set(field.name, field.value); err != nil {
			return err
		}
	}
	for _, ordinal := range ordinals {
		key := strconv.Itoa(ordinal)
		if number, ok := b.sequences[key]; ok {
			err = b.set("sequenceNumberForAllocation.:"+key, strconv.AppendUint(nil, number, 10)) // : marks a key, not an index
		} else {
			err = b.unset("sequenceNumberForAllocation." + key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// equal reports whether both blocks decode to the same values.
func (b block) equal(other block) bool {
	same := func(x, y *int) bool { return (x == nil) == (y == nil) && (x == nil || *x == *y) }
	return b.cidr == other.cidr && b.sequence == other.sequence && b.deleted == other.deleted &&
		slices.EqualFunc(b.allocations, other.allocations, same) &&
		slices.Equal(b.unallocated, other.unallocated) &&
		maps.Equal(b.sequences, other.sequences) &&
		slices.EqualFunc(b.attributes, other.attributes, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) })
}

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
