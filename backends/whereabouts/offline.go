package whereabouts

import (
	"encoding/json"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Offline returns the backends over the pools and overlapping-range reservations
// among the documents, and the other documents. A backend of which there is
// nothing is left out.
func Offline(documents []reaper.Document) (found []reaper.Backend, rest []reaper.Document) {
	var pools, reservations []json.RawMessage
	for _, d := range documents {
		switch group := v1alpha1.SchemeGroupVersion.Group; {
		case d.Is(group, "IPPool"):
			pools = append(pools, d.Data)
		case d.Is(group, "OverlappingRangeIPReservation"):
			reservations = append(reservations, d.Data)
		default:
			rest = append(rest, d)
		}
	}
	if len(pools) > 0 {
		found = append(found, reaper.Excerpt{Store: PoolsName, Units: poolUnits(pools)})
	}
	if len(reservations) > 0 {
		found = append(found, reaper.Excerpt{Store: OverlappingName, Units: overlappingUnits(reservations, readPools(pools))})
	}
	return found, rest
}
