package whereabouts

import (
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// slabs hold the allocations of a listing. They are not safe for concurrent use. With nil
// slabs, each one is held alone.
type slabs struct {
	texts       kube.TextSlab
	allocations kube.Slab[reaper.Allocation]
}

// text returns a copy of the text.
func (s *slabs) text(text string) string {
	if s == nil {
		return text
	}
	return s.texts.Keep(text)
}

// one returns a list with an empty allocation.
func (s *slabs) one() []reaper.Allocation {
	if s == nil {
		return make([]reaper.Allocation, 1)
	}
	return s.allocations.Keep(reaper.Allocation{})
}
