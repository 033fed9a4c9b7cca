package ipam_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Files tell which objects of a kind there are if they have one, or an empty list. A part of a list does
// not: the object that keeps an allocation may be in the rest.
func TestFilesThatLackAList(t *testing.T) {
	list := ipam.Document{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstanceList", List: true}
	part := list
	part.More = true
	one := ipam.Document{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Data: []byte("{}")}
	whole := ipam.Document{APIVersion: ipam.DumpGroup + "/v1alpha1", Kind: ipam.DumpKind}
	for _, tt := range []struct {
		name      string
		documents []ipam.Document
		want      bool
	}{
		{"nothing", nil, true},
		{"another list", []ipam.Document{{APIVersion: "v1", Kind: "NodeList", List: true}}, true},
		{"an object", []ipam.Document{one}, false},
		{"an empty list", []ipam.Document{list}, false},
		{"a whole dump", []ipam.Document{whole}, false},
		{"a part of a list", []ipam.Document{one, part}, true},
		{"a part of a list, beside others", []ipam.Document{one, list, part, whole}, true},
		{"a part of another list", []ipam.Document{one, {APIVersion: "v1", Kind: "NodeList", List: true, More: true}}, false},
	} {
		if got := ipam.Lacks(tt.documents, "VirtualMachineInstance", "kubevirt.io"); got != tt.want {
			t.Errorf("%s: lacks it: %t, want %t", tt.name, got, tt.want)
		}
	}
}
