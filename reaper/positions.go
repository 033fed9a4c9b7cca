package reaper

import (
	"hash/maphash"
	"iter"
)

// positions is a hash table of positions in a list, by the keys of what is there. It holds
// no keys, so it takes some 10 bytes for each: a question gets some positions of other keys
// too, and the caller compares. The zero table is empty. After the last put, it is safe for
// concurrent use.
type positions[K comparable] struct {
	heads []int32 // by hash: the position that was put in last, plus 1; 0 if there is none
	next  []int32 // by position: the one that was put in before, plus 1; 0 if there is none
}

// positionsSeed makes it unknown to tenants which keys have the same hash.
var positionsSeed = maphash.MakeSeed()

// newPositions returns a table for positions below n.
func newPositions[K comparable](n int) positions[K] {
	size := 1
	for size < n {
		size *= 2
	}
	return positions[K]{heads: make([]int32, size), next: make([]int32, n)}
}

// put adds a position, which must be below those in the table.
func (p *positions[K]) put(i int, key K) {
	head := p.head(key)
	p.next[i], *head = *head, int32(i+1)
}

// at yields the positions of a key, and maybe of others, in ascending order.
func (p *positions[K]) at(key K) iter.Seq[int] {
	return func(yield func(int) bool) {
		if len(p.next) == 0 {
			return
		}
		for i := *p.head(key); i != 0; i = p.next[i-1] {
			if !yield(int(i - 1)) {
				return
			}
		}
	}
}

// head returns the place in heads of a key.
func (p *positions[K]) head(key K) *int32 {
	return &p.heads[maphash.Comparable(positionsSeed, key)&uint64(len(p.heads)-1)]
}
