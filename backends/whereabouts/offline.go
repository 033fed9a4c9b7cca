package whereabouts

import (
	"encoding/json"
	"iter"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Offline returns the backends over the pools and overlapping-range reservations
// among the documents, and the other documents. A backend of which there is
// nothing is left out. What network attachments among them exclude is respected.
func Offline(documents []reaper.Document) (found []reaper.Backend, rest []reaper.Document) {
	var pools, reservations, attachments []json.RawMessage
	for _, d := range documents {
		switch group := v1alpha1.SchemeGroupVersion.Group; {
		case d.Is(group, poolKind):
			pools = append(pools, d.Data)
		case d.Is(group, overlappingKind):
			reservations = append(reservations, d.Data)
		case d.Is(attachmentGroup, attachmentKind):
			attachments = append(attachments, d.Data)
		default:
			rest = append(rest, d)
		}
	}
	excluded, err := readExclusions(attachments)
	excerpt := func(name string, units iter.Seq2[reaper.Unit, error]) {
		if err != nil {
			units = func(yield func(reaper.Unit, error) bool) { yield(reaper.Unit{}, err) }
		}
		found = append(found, reaper.Excerpt{Store: name, Units: units})
	}
	if len(pools) > 0 {
		excerpt(PoolsName, poolUnits(pools, excluded))
	}
	if len(reservations) > 0 {
		excerpt(OverlappingName, overlappingUnits(reservations, readPools(pools), excluded))
	}
	return found, rest
}
