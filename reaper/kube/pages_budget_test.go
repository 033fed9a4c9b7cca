package kube

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A pagedList has objects of these sizes, and answers with as many as it is asked for.
type pagedList struct {
	sizes  []int
	limits []int // of all requests
}

func (s *pagedList) page(_ context.Context, token string, limit int) (page[int], error) {
	from, _ := strconv.Atoi(token)
	to := min(from+limit, len(s.sizes))
	s.limits = append(s.limits, limit)
	var p page[int]
	for n := from; n < to; n++ {
		p.items, p.bytes = append(p.items, n), p.bytes+s.sizes[n]
	}
	if to < len(s.sizes) {
		p.next = strconv.Itoa(to)
	}
	return p, nil
}

// many returns n objects of a size.
func many(n, size int) []int { return slices.Repeat([]int{size}, n) }

// An API server holds a page, so one of large objects has few of them; and each page takes time, so
// one of small objects has many.
func TestPagesAreAsLargeAsTheirObjectsAllow(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name   string
		sizes  []int
		limits []int
	}{
		{"the smallest objects", many(12_000, 100), []int{500, 5000, 5000, 5000}},
		{"small objects", many(1200, 5<<10), []int{500, 819}},
		{"large objects", many(532, 256<<10), []int{500, 16, 16}},
		{"the largest objects", many(502, 3*mib), []int{500, 1, 1}},
		{"small ones behind large ones", append(many(516, 256<<10), many(1200, 1<<10)...), []int{500, 16, 16, 4096}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &pagedList{sizes: tt.sizes}
			got, err := readPages(t.Context(), 500, s.page)
			if err != nil || len(got.items) != len(tt.sizes) {
				t.Errorf("%d items, %v, want %d", len(got.items), err, len(tt.sizes))
			}
			if diff := cmp.Diff(tt.limits, s.limits); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise 2, 3. With objects of any sizes, the list is whole and in order.
func TestPagesOfAnySizesAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, 5 << 10, 256 << 10, 3 << 20, MaxObject})
		s := &pagedList{}
		for range rapid.IntRange(0, 8).Draw(t, "runs") {
			s.sizes = append(s.sizes, many(rapid.IntRange(1, 300).Draw(t, "objects"), size.Draw(t, "size"))...)
		}
		first := rapid.IntRange(1, 600).Draw(t, "first")
		list, err := readPages(t.Context(), first, s.page)
		got := list.items
		if err != nil || len(got) != len(s.sizes) || !slices.IsSorted(got) || len(slices.Compact(got)) != len(s.sizes) {
			t.Fatalf("%d items of %d, %v", len(got), len(s.sizes), err)
		}
		if slices.Min(s.limits) < 1 || slices.Max(s.limits) > 10*first {
			t.Fatalf("limits %v", s.limits)
		}
	})
}
