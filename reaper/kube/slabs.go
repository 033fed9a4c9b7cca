package kube

import (
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// slabs hold what is read of a list of pods. They are not safe for concurrent use. With nil
// slabs, each value is held alone.
type slabs struct {
	shared     map[string]string // texts of which one copy is kept: many pods have the same namespace, node or interface
	texts      TextSlab          // of one pod
	addresses  Slab[netip.Addr]
	interfaces Slab[reaper.Interface]
}

func newSlabs() *slabs { return &slabs{shared: make(map[string]string)} }

// sharedOf returns the text of these bytes, and does not keep the bytes.
func (s *slabs) sharedOf(bytes []byte) string {
	if s == nil {
		return string(bytes)
	}
	if text, ok := s.shared[string(bytes)]; ok {
		return text
	}
	return s.one(string(bytes))
}

// one returns the copy of the text that is kept.
func (s *slabs) one(text string) string {
	if s == nil {
		return text
	}
	if kept, ok := s.shared[text]; ok {
		return kept
	}
	s.shared[text] = text
	return text
}

// ofPod returns copies of the addresses and interfaces of a pod.
func (s *slabs) ofPod(addresses []netip.Addr, interfaces []reaper.Interface) ([]netip.Addr, []reaper.Interface) {
	if s == nil {
		return slices.Clone(addresses), slices.Clone(interfaces)
	}
	return s.addresses.Keep(addresses...), s.interfaces.Keep(interfaces...)
}
