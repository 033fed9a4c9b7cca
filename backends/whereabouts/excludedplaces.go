package whereabouts

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// excludedPlaces say for one place after another what its attachments exclude. A tenant may write
// thousands of attachments of one range, which has thousands of allocations, so the
// attachments of a place are sorted once. excludedPlaces are safe for concurrent use.
type excludedPlaces struct {
	mu     sync.Mutex
	places map[place]*excludedPlace
	given  map[string]reaper.Spans // what the plugin surely gives to pods, by network
}

// An excludedPlace has what the attachments without slices keep at one place.
type excludedPlace struct {
	broken   reach // of attachments that cannot be decoded: all that they may exclude
	excluded reach
}

// at returns what is excluded at a place.
func (k *excludedPlaces) at(at place, all exclusions) *excludedPlace {
	k.mu.Lock()
	defer k.mu.Unlock()
	at.in = asRange(at.in)
	found := k.places[at]
	if found == nil {
		found = newExcludedPlace(at, all)
		k.places[at] = found
	}
	return found
}

func newExcludedPlace(at place, all exclusions) *excludedPlace {
	var k excludedPlace
	keeping := all.keepingAt(at)
	for i := range keeping {
		switch r := &keeping[i]; {
		case r.sliced || !r.mayBeOf(at, r.from.Addr()):
		case r.broken != nil:
			// Of several, the last one is named.
			k.broken = append(k.broken, reached{reaper.SpanOf(r.from), r, -i})
		default:
			for _, s := range r.exclude.Within(r.from) {
				k.excluded = append(k.excluded, reached{s, r, i})
			}
		}
	}
	k.broken.sort()
	k.excluded.sort()
	return &k
}

// gives reports whether the plugin surely gives the address to pods of a network.
func (k *excludedPlaces) gives(network string, ip netip.Addr, giving []attachedRange) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.given == nil {
		spans := make(map[string][]reaper.Span)
		for _, r := range giving {
			name := cmp.Or(r.network, unnamed)
			spans[name] = append(spans[name], reaper.NewSpans(reaper.Span{First: r.first, Last: r.last}).Without(r.exclude)...)
		}
		k.given = make(map[string]reaper.Spans, len(spans))
		for name, of := range spans {
			k.given[name] = reaper.NewSpans(of...)
		}
	}
	return k.given[network].Contains(ip)
}

// A reach has spans of attachments, sorted by their first addresses. After sort, each carries
// the span that reaches farthest so far.
type reach []reached

// A reached is a span of an attachment. Of equal spans, that of the lower order counts.
type reached struct {
	reaper.Span
	by    *attachedRange
	order int
}

// sort prepares the questions.
func (r reach) sort() {
	slices.SortFunc(r, func(a, b reached) int { return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.order, b.order)) })
	for i := range r {
		if i > 0 && r[i].Last.Compare(r[i-1].Last) <= 0 {
			first := r[i].First
			r[i] = r[i-1]
			r[i].First = first // for the search; the span begins before it
		}
	}
}

// over returns an attachment of which a span has the address.
func (r reach) over(ip netip.Addr) (*attachedRange, bool) {
	behind := sort.Search(len(r), func(i int) bool { return ip.Less(r[i].First) })
	if behind == 0 || r[behind-1].Last.Less(ip) {
		return nil, false
	}
	return r[behind-1].by, true
}
