package calico

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// edited are the fields of a block that a release may change.
var edited = []string{"allocations", "unallocated", "attributes", "sequenceNumber", "sequenceNumberForAllocation"}

// A member is one field of a stored JSON object, and the place of its value.
type member struct {
	key        string
	value      string
	start, end int
}

// members splits an object into its members. It uses only encoding/json.
func members(object string) ([]member, error) {
	d := json.NewDecoder(strings.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var all []member
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		m := member{key: key.(string), value: string(value), end: int(d.InputOffset())}
		m.start = m.end - len(value)
		if object[m.start:m.end] != m.value {
			return nil, fmt.Errorf("%q is not at %d", value, m.start)
		}
		all = append(all, m)
	}
	return all, nil
}

// fields returns the values of the named fields, and the rest as it is stored: with
// its spaces, and a mark in the place of each value.
func fields(o object, names []string) (map[string]string, string, error) {
	rest, values := string(o.raw), make(map[string]string)
	offset, scope := 0, rest
	if o.root != "" {
		whole, err := members(rest)
		if err != nil {
			return nil, "", err
		}
		for _, m := range whole {
			if m.key == o.root {
				offset, scope = m.start, m.value
			}
		}
	}
	all, err := members(scope)
	for _, m := range slices.Backward(all) {
		if slices.Contains(names, m.key) {
			values[m.key] = m.value
			rest = rest[:offset+m.start] + "•" + rest[offset+m.end:]
		}
	}
	return values, rest, err
}

// A content holds a block's fields about its addresses.
type content struct {
	allocations []*int
	unallocated []int
	attributes  []json.RawMessage
}

// contentOf decodes the fields of a block with encoding/json. An absent field is
// empty.
func contentOf(values map[string]string) (c content, err error) {
	for name, into := range map[string]any{"allocations": &c.allocations, "unallocated": &c.unallocated, "attributes": &c.attributes} {
		if value, ok := values[name]; ok {
			err = errors.Join(err, json.Unmarshal([]byte(value), into))
		}
	}
	return c, err
}

// checkBlock returns an error if a block breaks an invariant of Calico's. It does
// not use the code under test.
func checkBlock(o object) error {
	values, _, err := fields(o, edited)
	if err != nil {
		return err
	}
	c, err := contentOf(values)
	if err != nil {
		return err
	}
	times := make(map[int]int) // how often an ordinal is in the two lists
	used := make(map[int]bool)
	for ordinal, index := range c.allocations {
		if index != nil {
			times[ordinal]++
			used[*index] = true
		}
	}
	for _, ordinal := range c.unallocated {
		times[ordinal]++
	}
	for ordinal := range c.allocations {
		if times[ordinal] != 1 {
			return fmt.Errorf("ordinal %d is in the lists %d times", ordinal, times[ordinal])
		}
	}
	for index := range c.attributes {
		if !used[index] {
			return fmt.Errorf("attribute %d has no address", index)
		}
	}
	if len(times) != len(c.allocations) || len(used) != len(c.attributes) {
		return fmt.Errorf("%d ordinals of %d, %d attributes of %d", len(times), len(c.allocations), len(used), len(c.attributes))
	}
	return nil
}

// checkRelease returns an error unless the block after a release is the block
// before it without the released ordinals, and every other byte is the same.
func checkRelease(before, after object, released []int) error {
	if err := checkBlock(after); err != nil {
		return err
	}
	valuesBefore, restBefore, err := fields(before, edited)
	if err != nil {
		return err
	}
	valuesAfter, restAfter, err := fields(after, edited)
	if err != nil {
		return err
	}
	for _, name := range edited { // an absent field is added at the end
		if _, ok := valuesBefore[name]; !ok {
			restAfter = strings.Replace(restAfter, `,"`+name+`":•`, "", 1)
		}
	}
	if restBefore != restAfter {
		return fmt.Errorf("the rest is\n%s\nand was\n%s", restAfter, restBefore)
	}
	was, err := contentOf(valuesBefore)
	if err != nil {
		return err
	}
	is, err := contentOf(valuesAfter)
	if err != nil {
		return err
	}
	if want := slices.Concat(was.unallocated, released); !slices.Equal(is.unallocated, want) {
		return fmt.Errorf("unallocated are %v, want %v", is.unallocated, want)
	}
	var want []json.RawMessage // the attributes that stay, in their order
	for index, attribute := range was.attributes {
		for ordinal, i := range was.allocations {
			if i != nil && *i == index && !slices.Contains(released, ordinal) {
				want = append(want, attribute)
				break
			}
		}
	}
	if !slices.EqualFunc(is.attributes, want, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) }) {
		return fmt.Errorf("attributes are %s, want %s", is.attributes, want)
	}
	for ordinal, index := range was.allocations {
		now := is.allocations[ordinal]
		gone := index == nil || slices.Contains(released, ordinal)
		if (now == nil) != gone || now != nil && !bytes.Equal(is.attributes[*now], was.attributes[*index]) {
			return fmt.Errorf("ordinal %d has another attribute than before", ordinal)
		}
	}
	return checkNumbers(valuesBefore, valuesAfter, released)
}

// checkNumbers compares the sequence numbers.
func checkNumbers(was, is map[string]string, released []int) error {
	number, _ := strconv.ParseUint(was["sequenceNumber"], 10, 64)
	if want := strconv.FormatUint(number+1, 10); is["sequenceNumber"] != want {
		return fmt.Errorf("the sequence number is %s, want %s", is["sequenceNumber"], want)
	}
	each := func(object string) ([]string, error) {
		if object == "" || object == "null" {
			return nil, nil
		}
		all, err := members(object)
		var lines []string
		for _, m := range all {
			lines = append(lines, m.key+"="+m.value)
		}
		return lines, err
	}
	want, err := each(was["sequenceNumberForAllocation"])
	if err != nil {
		return err
	}
	want = slices.DeleteFunc(want, func(line string) bool {
		key, _, _ := strings.Cut(line, "=")
		return slices.ContainsFunc(released, func(ordinal int) bool { return strconv.Itoa(ordinal) == key })
	})
	got, err := each(is["sequenceNumberForAllocation"])
	if !slices.Equal(want, got) {
		return fmt.Errorf("the sequence numbers of allocations are %s, want %s", got, want)
	}
	return err
}
