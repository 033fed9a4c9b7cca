package calico

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
	kjson "sigs.k8s.io/json"
)

// release returns the block without the allocations of the ordinals, in the form
// that is to be stored. Every byte that does not belong to them stays. The receiver
// does not change.
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
	moved := make([]int, len(b.attributes))
	for i := range moved {
		moved[i] = -1
	}
	for _, index := range b.allocations {
		if index != nil {
			moved[*index] = 0
		}
	}
	var raw []json.RawMessage
	var readable []attribute
	for i := range moved {
		if moved[i] == 0 {
			moved[i] = len(raw)
			raw = append(raw, b.attributes[i])
			readable = append(readable, b.readable[i])
		}
	}
	for ordinal, index := range b.allocations {
		if index != nil {
			b.allocations[ordinal] = &moved[*index]
		}
	}
	b.attributes, b.readable = raw, readable
}

// store writes the fields into the stored form, and of the sequence numbers those
// of the ordinals.
func (b *block) store(ordinals []int) error {
	allocations := make([]json.RawMessage, len(b.allocations))
	for ordinal, index := range b.allocations {
		allocations[ordinal] = json.RawMessage("null")
		if index != nil {
			allocations[ordinal] = strconv.AppendInt(nil, int64(*index), 10)
		}
	}
	unallocated := make([]json.RawMessage, len(b.unallocated))
	for i, ordinal := range b.unallocated {
		unallocated[i] = strconv.AppendInt(nil, int64(ordinal), 10)
	}
	for _, field := range []struct {
		name  string
		value []byte
	}{
		{"allocations", array(allocations)},
		{"unallocated", array(unallocated)},
		{"attributes", array(b.attributes)},
		{"sequenceNumber", strconv.AppendUint(nil, b.sequence, 10)},
	} {
		if err := b.set(field.name, field.value); err != nil {
			return err
		}
	}
	for _, ordinal := range ordinals {
		key := strconv.Itoa(ordinal)
		var err error
		if number, ok := b.sequences[key]; ok {
			err = b.put("sequenceNumberForAllocation", key, strconv.AppendUint(nil, number, 10))
		} else {
			err = b.unset("sequenceNumberForAllocation." + key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// array joins JSON values into a JSON array.
func array(values []json.RawMessage) []byte {
	joined := []byte{'['}
	for i, value := range values {
		if i > 0 {
			joined = append(joined, ',')
		}
		joined = append(joined, value...)
	}
	return append(joined, ']')
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

// unambiguous returns an error if a key stands twice in an object of the stored
// form. Readers differ in which of the two they take, and an edit changes only one.
func (o object) unambiguous() error {
	var whole any
	twice, err := kjson.UnmarshalStrict(o.raw, &whole)
	return errors.Join(append(twice, err)...)
}

// set replaces one value in the stored form. Every other byte stays.
func (o *object) set(path string, value []byte) (err error) {
	o.raw, err = sjson.SetRawBytes(slices.Clone(o.raw), o.path(path), value)
	return err
}

// put sets the value of a key in an object of the stored form. Every other byte
// stays. A new key goes to its place in the order of strings, in which Go's
// encoding/json, and thereby Calico, writes the keys of maps.
func (o *object) put(field, key string, value []byte) error {
	whole := gjson.GetBytes(o.raw, o.path(field))
	end, at, member := 0, 0, fmt.Sprintf("%q:%s", key, value)
	there := false
	whole.ForEach(func(k, v gjson.Result) bool {
		there = k.String() == key
		if at == 0 && k.String() > key {
			at = k.Index
		}
		end = v.Index + len(v.Raw)
		return !there
	})
	switch {
	case there:
		return o.set(field+"."+escape(key), value)
	case !whole.IsObject() || end == 0:
		return o.set(field, []byte("{"+member+"}"))
	case at > 0:
		o.raw = slices.Concat(o.raw[:at], []byte(member+","), o.raw[at:])
	default:
		o.raw = slices.Concat(o.raw[:end], []byte(","+member), o.raw[end:])
	}
	return nil
}

// unset removes one value from the stored form, if it is there.
func (o *object) unset(path string) (err error) {
	if gjson.GetBytes(o.raw, o.path(path)).Exists() {
		o.raw, err = sjson.DeleteBytes(slices.Clone(o.raw), o.path(path))
	}
	return err
}
