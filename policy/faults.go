package policy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// faults are the paths of the fields with a mistake, in order. One question takes the
// logarithm of their number, since a policy may have as many questions as mistakes.
type faults []string

func newFaults(found field.ErrorList) faults {
	f := make(faults, len(found))
	for i, err := range found {
		f[i] = err.Field
	}
	slices.Sort(f)
	return slices.Compact(f)
}

// at reports whether one of the mistakes is at the field, below it, or at a field that
// contains it.
func (f faults) at(field *field.Path) bool {
	path := field.String()
	for i := range path {
		if (path[i] == '.' || path[i] == '[') && f.has(path[:i]) {
			return true
		}
	}
	return f.has(path) || f.below(path+".") || f.below(path+"[")
}

// has reports whether one of the mistakes is at the path.
func (f faults) has(path string) bool {
	_, found := slices.BinarySearch(f, path)
	return found
}

// below reports whether the path of one of the mistakes begins with the prefix.
func (f faults) below(prefix string) bool {
	i, _ := slices.BinarySearch(f, prefix)
	return i < len(f) && strings.HasPrefix(f[i], prefix)
}

// within reports whether the path of fields is outer, or continues it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
