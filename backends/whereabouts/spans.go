package whereabouts

import (
	"net"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// spansOf returns the addresses of the networks. A tenant may write tens of thousands of
// excludes into one attachment, so a question takes the logarithm of their number.
func spansOf(networks []*net.IPNet) reaper.Spans {
	all := make([]reaper.Span, 0, len(networks))
	for _, n := range networks {
		first, last := ends(n)
		all = append(all, reaper.Span{First: first, Last: last})
	}
	return reaper.NewSpans(all...)
}
