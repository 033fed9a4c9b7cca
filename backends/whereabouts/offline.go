package whereabouts

import (
	"encoding/json"
	"iter"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Offline returns the backends over the IPPools and overlapping reservations among
// the documents, and the documents that are neither these nor network attachments.
// A backend without an object is left out. The network attachments among the
// documents protect what they exclude.
func Offline(documents []reaper.Document) (found []reaper.Backend, rest []reaper.Document) {
	var ipPools, overlapping, attachments []json.RawMessage
	for _, d := range documents {
		switch group := v1alpha1.SchemeGroupVersion.Group; {
		case d.Is(group, poolKind):
			ipPools = append(ipPools, d.Data)
		case d.Is(group, overlappingKind):
			overlapping = append(overlapping, d.Data)
		case d.Is(attachmentGroup, attachmentKind):
			attachments = append(attachments, d.Data)
		default:
			rest = append(rest, d)
		}
	}
	excluded, err := readExclusions(attachments)
	excerpt := func(name string, pools iter.Seq2[reaper.Pool, error]) {
		if err != nil {
			pools = func(yield func(reaper.Pool, error) bool) { yield(reaper.Pool{}, err) }
		}
		found = append(found, reaper.Excerpt{Store: name, Pools: pools})
	}
	if len(ipPools) > 0 {
		excerpt(PoolsName, enginePools(ipPools, excluded))
	}
	if len(overlapping) > 0 {
		excerpt(OverlappingName, overlappingPools(overlapping, readPools(ipPools), excluded))
	}
	return found, rest
}
