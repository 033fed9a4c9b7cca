package kit

import "testing"

// Sample returns all rows of a matrix, or the first, the middle and the last
// one with -short.
func Sample[T any](all []T) []T {
	if testing.Short() {
		return thinned(all)
	}
	return all
}

// SampleBy returns all rows of a matrix, or the first of each kind with -short.
func SampleBy[T any, K comparable](all []T, kind func(T) K) []T {
	if testing.Short() {
		return firsts(all, kind)
	}
	return all
}

// thinned returns the first, the middle and the last of all.
func thinned[T any](all []T) []T {
	if len(all) <= 3 {
		return all
	}
	return []T{all[0], all[len(all)/2], all[len(all)-1]}
}

// firsts returns the first of each kind, in their order.
func firsts[T any, K comparable](all []T, kind func(T) K) []T {
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
