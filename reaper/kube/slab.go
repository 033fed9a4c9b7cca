package kube

import (
	"reflect"
	"slices"
	"strings"
)

// slabBytes is the size of a block of a slab.
const slabBytes = 32 << 10

// A Slab keeps small values side by side, in large blocks. A reader of a large list keeps some
// small values and forgets others. If both were in the same part of the memory, what it
// forgets would leave gaps between what it keeps. The memory of a block is free when none of
// its values is needed. The zero Slab is empty. A nil Slab keeps each value alone. It is not
// safe for concurrent use.
type Slab[T any] struct {
	free []T // of the block
}

// Keep returns a copy of the values. An append to it does not change other values.
func (s *Slab[T]) Keep(values ...T) []T {
	n := len(values)
	if s == nil || n == 0 {
		return slices.Clone(values)
	}
	if n > len(s.free) {
		s.free = make([]T, max(n, slabBytes/int(max(1, reflect.TypeFor[T]().Size()))))
	}
	kept := s.free[:n:n]
	s.free = s.free[n:]
	copy(kept, values)
	return kept
}

// A TextSlab is a Slab of texts.
type TextSlab struct {
	block *strings.Builder
}

// Keep returns a copy of the text.
func (s *TextSlab) Keep(text string) string {
	switch {
	case s == nil || len(text) > slabBytes:
		return strings.Clone(text)
	case s.block == nil || s.block.Cap()-s.block.Len() < len(text):
		s.block = new(strings.Builder)
		s.block.Grow(slabBytes)
	}
	begin := s.block.Len()
	s.block.WriteString(text)
	return s.block.String()[begin:]
}
