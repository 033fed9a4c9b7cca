package whereabouts

import (
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A shelf keeps the allocations of a listing. It is not safe for concurrent use. The nil
// shelf keeps each one alone.
type shelf struct {
	texts       kube.TextSlab
	allocations kube.Slab[reaper.Allocation]
}

// text returns a copy of the text.
func (s *shelf) text(text string) string {
	if s == nil {
		return text
	}
	return s.texts.Keep(text)
}

// one returns a list with an empty allocation.
func (s *shelf) one() []reaper.Allocation {
	if s == nil {
		return make([]reaper.Allocation, 1)
	}
	return s.allocations.Keep(reaper.Allocation{})
}
