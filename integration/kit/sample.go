package kit

import "testing"

// SampleBy returns all rows of a matrix, or with -short the first of each kind.
func SampleBy[T any, K comparable](all []T, kind func(T) K) []T {
	if !testing.Short() {
		return all
	}
	seen := map[K]bool{}
	var some []T
	for _, one := range all {
		if k := kind(one); !seen[k] {
			seen[k] = true
			some = append(some, one)
		}
	}
	return some
}
