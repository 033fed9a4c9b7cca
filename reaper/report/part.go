package report

import (
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// partOf returns a network as pods see it that ask for some of its attachments: what these hand out of it, if
// others hand out something else. A report of some entries alone has no figures for that.
func (r Report) partOf(n NetworkReport, attachments []string) NetworkReport {
	var spans []ipam.Span
	for _, one := range attachments {
		spans = append(spans, n.parts[one]...)
	}
	if len(spans) == 0 || !r.Run.Selection.Everything() {
		return n
	}
	n.Usable = ipam.NewSpans(spans...)
	for _, span := range n.Usable {
		n.part = append(n.part, span.First.String()+" to "+span.Last.String())
	}
	n.Attachments = slices.DeleteFunc(slices.Clone(n.Attachments), func(one string) bool { return !slices.Contains(attachments, one) })
	pools := n.refs()
	fates := make(map[netip.Addr]Fate)
	for i := range r.Entries {
		e := &r.Entries[i]
		ip, err := netip.ParseAddr(e.IP)
		if err == nil && pools[e.pool()] && n.Usable.Contains(ip) {
			fates[ip] = max(fates[ip], e.Fate())
		}
	}
	var taken filling
	for _, fate := range fates {
		taken.add(fate, true)
	}
	unknown := n.Free == nil || n.Blocked+n.Unrecorded > 0 // these may be of this part
	n.Usage = taken.usage(n.Usable.Count(), n.Closed != "")
	if unknown {
		n.Free, n.FullPercent = nil, nil
	}
	return n
}
