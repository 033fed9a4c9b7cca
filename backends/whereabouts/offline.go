package whereabouts

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// OfflinePools returns the backend over the pools among the documents, and the documents it
// does not use. Without any pool, the backend is nil. It respects IPAMClaims among the documents.
func OfflinePools(documents []ipam.Document, settings func(backend string) any) (ipam.Backend, []ipam.Document) {
	e, rest := sortOut(documents, poolKind, sliceKind)
	if len(e[poolKind]) == 0 {
		return nil, rest
	}
	s := e.survey(documents)
	b := e.backend(PoolsName, documents)
	b.Pools = s.listed(enginePools(decoded(e[poolKind], readPool), &s, e.protections(documents, settings)))
	b.Networks = func(pools []ipam.Pool) ([]ipam.Network, error) {
		return s.networks(pools), errors.Join(s.errs...)
	}
	return b, rest
}

// OfflineOverlapping is OfflinePools for overlapping-range reservations. The pools
// among the documents say which addresses they still hold.
func OfflineOverlapping(documents []ipam.Document, settings func(backend string) any) (ipam.Backend, []ipam.Document) {
	e, rest := sortOut(documents, poolKind, overlappingKind, sliceKind)
	if len(e[overlappingKind]) == 0 {
		return nil, rest
	}
	s := e.survey(documents)
	b := e.backend(OverlappingName, documents)
	reservations, pools := decoded(e[overlappingKind], readReservation), decoded(e[poolKind], readPool)
	b.Pools = s.listed(overlappingPools(reservations, pools, &s, e.protections(documents, settings)))
	return b, rest
}

// survey returns what is known about the ranges in the files.
func (e excerpt) survey(documents []ipam.Document) survey {
	var c configurations
	r := round{slices: decoded(e[sliceKind], readSlicePool), attachments: decoded(e[attachmentKind], c.take)}
	if ipam.Lacks(documents, attachmentKind, attachmentGroup) {
		r.noAttachments = errors.New("the files do not list all network attachments")
	}
	return r.survey()
}

// protections returns what keeps the allocations in the files.
func (e excerpt) protections(documents []ipam.Document, settings func(backend string) any) protections {
	return protections{claims: e.offlineClaims(documents), settings: shared(settings)}
}

// decoded returns what read makes of each object.
func decoded[T any](items []json.RawMessage, read func(json.RawMessage) T) []T {
	all := make([]T, len(items))
	for i, item := range items {
		all[i] = read(item)
	}
	return all
}

// An excerpt has the objects of Whereabouts and of networks that files contain, by kind.
type excerpt map[string][]json.RawMessage

// sortOut takes network attachments, IPAMClaims and the objects of some kinds out of
// the documents.
func sortOut(documents []ipam.Document, kinds ...string) (e excerpt, rest []ipam.Document) {
	e = make(excerpt)
	for _, d := range documents {
		beside := d.Is(attachmentGroup, attachmentKind) || d.Is(attachmentGroup, claimKind)
		if beside || d.Is(v1alpha1.SchemeGroupVersion.Group, d.Kind) && slices.Contains(kinds, d.Kind) {
			e[d.Kind] = append(e[d.Kind], d.Data)
		} else {
			rest = append(rest, d)
		}
	}
	return e, rest
}

// backend returns a backend without pools.
func (e excerpt) backend(name string, documents []ipam.Document) ipam.Excerpt {
	b := ipam.Excerpt{Store: name}
	if ipam.Lacks(documents, poolKind, v1alpha1.SchemeGroupVersion.Group) {
		b.Lacks = []ipam.Lack{{Of: "IPPools of Whereabouts"}}
	}
	return b
}
