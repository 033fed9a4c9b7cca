package whereabouts

import (
	"encoding/json"
	"errors"
	"iter"
	"slices"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// OfflinePools returns the backend over the pools among the documents, and the documents it
// does not use. Without any pool, the backend is nil. It respects network attachments (their
// excludes) and IPAMClaims among the documents.
func OfflinePools(documents []ipam.Document, settings func(backend string) any) (ipam.Backend, []ipam.Document) {
	e, rest := sortOut(documents, poolKind, sliceKind)
	if len(e[poolKind]) == 0 {
		return nil, rest
	}
	excluded := readExclusions(e[attachmentKind])
	s := e.survey(excluded)
	b := e.backend(PoolsName, documents, settings, func(by protections) iter.Seq2[ipam.Pool, error] {
		return enginePools(decoded(e[poolKind], readPool), &s, by)
	})
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
	return e.backend(OverlappingName, documents, settings, func(by protections) iter.Seq2[ipam.Pool, error] {
		s := e.survey(by.excluded)
		return overlappingPools(decoded(e[overlappingKind], readReservation), decoded(e[poolKind], readPool), &s, by)
	}), rest
}

// survey returns what is known about the ranges in the files, which exclude these addresses.
func (e excerpt) survey(excluded *exclusions) survey {
	r := round{slices: decoded(e[sliceKind], readSlicePool)}
	return r.survey(excluded)
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

// backend returns a backend over the pools.
func (e excerpt) backend(name string, documents []ipam.Document, settings func(string) any, pools func(protections) iter.Seq2[ipam.Pool, error]) ipam.Excerpt {
	excluded := readExclusions(e[attachmentKind])
	p := protections{excluded: excluded, claims: e.offlineClaims(documents), settings: shared(settings)}
	var lacks []ipam.Lack
	if ipam.Lacks(documents, attachmentKind, attachmentGroup) {
		lacks = append(lacks, ipam.Lack{Of: "network attachments"})
	}
	if ipam.Lacks(documents, poolKind, v1alpha1.SchemeGroupVersion.Group) {
		lacks = append(lacks, ipam.Lack{Of: "IPPools of Whereabouts"})
	}
	return ipam.Excerpt{Store: name, Pools: excluded.withObjectErrors(pools(p)), Lacks: lacks}
}
