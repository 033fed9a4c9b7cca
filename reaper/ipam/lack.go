package ipam

import (
	"regexp"
	"slices"
	"strings"
)

// The type of the last document of a dump by ip-reaper. If it is there, the documents have every list
// that the cluster has, and by which a run judges.
const (
	DumpGroup = "ip-reaper"
	DumpKind  = "Dump"
)

// A Lack is a list that files do not have. An allocation that an object in it may keep is protected.
type Lack struct {
	Of    string                 // what the list has, such as "StatefulSets"
	Keeps func(*Allocation) bool // nil: any
}

// Says is what protects the allocations.
func (l Lack) Says() string { return LackSays + l.Of + ", and one may keep it" }

// LackSays begins what a Lack says.
const LackSays = "the files do not list all "

// Lacks reports whether the documents do not tell which objects of a kind there are. An object, or an
// empty list that names its kind, tells that; a part of a list does not.
func Lacks(documents []Document, kind string, groups ...string) bool {
	told := false
	for _, d := range documents {
		list := slices.ContainsFunc(groups, func(group string) bool { return d.Is(group, kind+"List") })
		if list && d.More {
			return true
		}
		told = told || list || d.Is(DumpGroup, DumpKind) || slices.ContainsFunc(groups, func(group string) bool { return d.Is(group, kind) })
	}
	return !told
}

// ordinal ends the names of the pods of StatefulSets.
var ordinal = regexp.MustCompile(`-[0-9]+$`)

// ClusterLacks returns what the documents lack that matters to the allocations of every store.
func ClusterLacks(documents []Document) []Lack {
	var lacks []Lack
	if Lacks(documents, "Node", "") {
		lacks = append(lacks, Lack{"nodes", nil})
	}
	if Lacks(documents, "StatefulSet", "apps") {
		lacks = append(lacks, Lack{"StatefulSets", func(a *Allocation) bool {
			return !a.NeverAdopted() && ordinal.MatchString(a.Owner.Pod.Name)
		}})
	}
	if Lacks(documents, "VirtualMachineInstance", "kubevirt.io") {
		lacks = append(lacks, Lack{"VirtualMachineInstances", func(a *Allocation) bool {
			return strings.HasPrefix(a.Owner.Pod.Name, "virt-launcher-")
		}})
	}
	return lacks
}
