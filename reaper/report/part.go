package report

import (
	"maps"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An AttachedPart is what some attachments hand out of a network of which others hand out something else.
type AttachedPart struct {
	Attachments []string `json:"attachments"`
	Ranges      []string `json:"ranges"` // such as "10.0.0.10 to 10.0.0.13"
	Usage

	usable ipam.Spans
}

// maxParts limits the parts of a network: each attachment that a tenant writes may be one.
const maxParts = 100

// partsOf returns the parts that attachments hand out, sorted by the first of these; none if there are too many.
func partsOf(spans map[string]ipam.Spans) []AttachedPart {
	var parts []AttachedPart
	for _, attachment := range slices.Sorted(maps.Keys(spans)) {
		usable := spans[attachment]
		if i := slices.IndexFunc(parts, func(p AttachedPart) bool { return slices.Equal(p.usable, usable) }); i >= 0 {
			parts[i].Attachments = append(parts[i].Attachments, attachment)
			continue
		}
		if len(parts) == maxParts {
			return nil
		}
		part := AttachedPart{Attachments: []string{attachment}, usable: usable}
		for _, span := range usable {
			part.Ranges = append(part.Ranges, span.First.String()+" to "+span.Last.String())
		}
		parts = append(parts, part)
	}
	return parts
}

// asPodsSeeIt returns the network as pods see it that ask for some of its attachments: the parts that these hand
// out, or all of it.
func (n NetworkReport) asPodsSeeIt(attachments []string) []NetworkReport {
	var seen []NetworkReport
	for _, p := range n.Parts {
		if slices.ContainsFunc(p.Attachments, func(one string) bool { return slices.Contains(attachments, one) }) {
			part := n
			part.Attachments, part.Usage, part.Usable, part.Parts = p.Attachments, p.Usage, p.usable, []AttachedPart{p}
			seen = append(seen, part)
		}
	}
	if len(seen) == 0 {
		return []NetworkReport{n}
	}
	return seen
}

// isPart reports whether the report is of one part of the network.
func (n NetworkReport) isPart() bool { return len(n.Parts) == 1 }
