package ipam

import (
	"slices"
	"strings"
)

// The type of the last document of a dump by ip-reaper.
const (
	DumpGroup = "ip-reaper"
	DumpKind  = "Dump"
)

// A Document is an object of a store or of a cluster that was read from a file.
type Document struct {
	File  string // the name of the file, for people
	Place string // where in the file it is, for people

	APIVersion string
	Kind       string // empty if the file does not say
	Key        string // in etcd; empty for an object of the API
	Data       []byte // as it is stored: JSON, or a value of etcd; empty for a list

	// List is set for a list. Its items are documents of their own. More says that
	// the list is not whole: the API server or etcd has another page.
	List bool
	More bool
}

// Is reports whether the object is of the kind of an API group, in any version. The
// group of pods is empty.
func (d Document) Is(group, kind string) bool {
	have, version, ok := strings.Cut(d.APIVersion, "/")
	if !ok {
		have, version = "", d.APIVersion
	}
	return d.Kind == kind && version != "" && have == group
}

// IsOf reports whether the object is of a resource of an API group, or its list is.
func (d Document) IsOf(group, resource string) bool {
	kind := d.Kind
	if d.List {
		kind = strings.TrimSuffix(kind, "List")
	}
	return Singular(kind) == Singular(resource) && d.Is(group, d.Kind)
}

// Singular returns what the name of a kind and that of its resource have in common.
func Singular(name string) string {
	name = strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(name), "-", ""), "s")
	if stem, ok := strings.CutSuffix(name, "ie"); ok {
		name = stem + "y"
	}
	return name
}

// Lacks reports whether the documents do not tell which objects of a kind there are. An object, or an
// empty list that names its kind, tells that; a part of a list does not.
func Lacks(documents []Document, kind string, groups ...string) bool {
	told := false
	for _, d := range documents {
		is := slices.ContainsFunc(groups, func(group string) bool { return d.IsOf(group, kind) })
		if is && d.More {
			return true
		}
		told = told || is
	}
	return !told
}
