package whereabouts

import (
	"encoding/json"
	"iter"
	"slices"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// OfflinePools returns the backend over the pools among the documents, and the
// documents that are of no use to it. Without any pool the backend is nil. What
// network attachments among the documents exclude is respected.
func OfflinePools(documents []reaper.Document) (reaper.Backend, []reaper.Document) {
	e, rest := sortOut(documents, poolKind)
	if len(e.pools) == 0 {
		return nil, rest
	}
	return e.backend(PoolsName, func(excluded exclusions) iter.Seq2[reaper.Pool, error] {
		return enginePools(e.pools, excluded)
	}), rest
}

// OfflineOverlapping is OfflinePools for overlapping-range reservations. The pools
// among the documents say which addresses they still hold.
func OfflineOverlapping(documents []reaper.Document) (reaper.Backend, []reaper.Document) {
	e, rest := sortOut(documents, poolKind, overlappingKind)
	if len(e.overlapping) == 0 {
		return nil, rest
	}
	return e.backend(OverlappingName, func(excluded exclusions) iter.Seq2[reaper.Pool, error] {
		return overlappingPools(e.overlapping, readPools(e.pools), excluded)
	}), rest
}

// An excerpt is what files have of Whereabouts, and of networks.
type excerpt struct{ pools, overlapping, attachments []json.RawMessage }

// sortOut takes network attachments and the objects of some kinds out of the
// documents.
func sortOut(documents []reaper.Document, kinds ...string) (e excerpt, rest []reaper.Document) {
	of := map[string]*[]json.RawMessage{poolKind: &e.pools, overlappingKind: &e.overlapping}
	for _, d := range documents {
		switch {
		case d.Is(attachmentGroup, attachmentKind):
			e.attachments = append(e.attachments, d.Data)
		case d.Is(v1alpha1.SchemeGroupVersion.Group, d.Kind) && slices.Contains(kinds, d.Kind):
			*of[d.Kind] = append(*of[d.Kind], d.Data)
		default:
			rest = append(rest, d)
		}
	}
	return e, rest
}

// backend returns one over the pools. It lists none where an exclusion cannot be
// read.
func (e excerpt) backend(name string, pools func(exclusions) iter.Seq2[reaper.Pool, error]) reaper.Backend {
	excluded, err := readExclusions(e.attachments)
	if err != nil {
		return reaper.Excerpt{Store: name, Pools: func(yield func(reaper.Pool, error) bool) { yield(reaper.Pool{}, err) }}
	}
	return reaper.Excerpt{Store: name, Pools: pools(excluded)}
}
