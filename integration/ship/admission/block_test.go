package admission_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"testing"
)

// A blockSpec is the spec of an IPAMBlock.
type blockSpec struct {
	CIDR        string         `json:"cidr"`
	Affinity    string         `json:"affinity"`
	Strict      bool           `json:"strictAffinity"`
	Deleted     bool           `json:"deleted"`
	Sequence    int64          `json:"sequenceNumber"`
	Allocations []*int         `json:"allocations"`
	Unallocated []int          `json:"unallocated"`
	Attributes  []any          `json:"attributes"`
	Numbers     map[string]int `json:"sequenceNumberForAllocation"`
}

// attribute is the owner of an address.
func attribute(handle string) any {
	return map[string]any{"handle_id": handle, "secondary": map[string]any{"pod": "pod-of-" + handle}}
}

// newBlock is a block of that many addresses. The handles have one address each, from the
// first one on.
func newBlock(size int, handles ...string) blockSpec {
	b := blockSpec{
		CIDR: "10.1.0.0/26", Affinity: "host:node-1", Sequence: 1800000000000000000,
		Allocations: make([]*int, size), Unallocated: []int{}, Attributes: []any{}, Numbers: map[string]int{},
	}
	for i := range size {
		if i >= len(handles) {
			b.Unallocated = append(b.Unallocated, i)
			continue
		}
		b.Allocations[i] = new(i)
		b.Attributes = append(b.Attributes, attribute(handles[i]))
		b.Numbers[strconv.Itoa(i)] = i + 5
	}
	return b
}

func (b blockSpec) clone() blockSpec {
	b.Allocations, b.Unallocated, b.Attributes = slices.Clone(b.Allocations), slices.Clone(b.Unallocated), slices.Clone(b.Attributes)
	b.Numbers = maps.Clone(b.Numbers)
	return b
}

// free frees addresses as the backend does: in one write, with their attributes.
func (b blockSpec) free(ordinals ...int) blockSpec {
	b = b.clone()
	b.Sequence++
	used := map[int]bool{}
	for _, i := range ordinals {
		b.Allocations[i] = nil
		delete(b.Numbers, strconv.Itoa(i))
		b.Unallocated = append(b.Unallocated, i)
	}
	for _, index := range b.Allocations {
		if index != nil {
			used[*index] = true
		}
	}
	moved, kept := map[int]int{}, []any{}
	for i, a := range b.Attributes {
		if used[i] {
			moved[i] = len(kept)
			kept = append(kept, a)
		}
	}
	for i, index := range b.Allocations {
		if index != nil {
			b.Allocations[i] = new(moved[*index])
		}
	}
	b.Attributes = kept
	return b
}

// json is the block as an object.
func (b blockSpec) json(t testing.TB, name string) string {
	return `{"apiVersion":"crd.projectcalico.org/v1","kind":"IPAMBlock","metadata":{"name":"` + name + `"},"spec":` + text(t, b) + `}`
}

// patch is the JSON patch that makes a block this one.
func (b blockSpec) patch(t testing.TB) string {
	return `[{"op":"replace","path":"/spec","value":` + text(t, b) + `}]`
}

func text(t testing.TB, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// take allocates a free address for an owner of its own, as a restore does.
func (b blockSpec) take(ordinal int, handle string) blockSpec {
	b = b.clone()
	b.Sequence++
	b.Unallocated = slices.DeleteFunc(b.Unallocated, func(i int) bool { return i == ordinal })
	b.Allocations[ordinal] = new(len(b.Attributes))
	b.Attributes = append(b.Attributes, attribute(handle))
	b.Numbers[strconv.Itoa(ordinal)] = 9
	return b
}
