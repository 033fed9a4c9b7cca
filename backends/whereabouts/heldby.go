package whereabouts

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A holder is an IPPool that may hold the addresses of overlapping reservations.
type holder struct {
	ipPool
	undecoded names    // if the IPPool cannot be decoded, the names in it
	odd       []string // keys that are not offsets in the range: each may be any of its addresses
}

// newHolder decodes an IPPool.
func newHolder(item json.RawMessage) holder {
	h := holder{ipPool: readPool(item)}
	if h.broken != nil {
		h.undecoded = namesIn(item)
		return h
	}
	for key := range h.allocations {
		if _, err := addressAt(h.prefix, key); err != nil {
			h.odd = append(h.odd, key)
		}
	}
	return h
}

func (h holder) version() version { return version{h.pool(), h.Metadata.ResourceVersion} }

// heldBy returns, for each overlapping reservation, the IPPool that holds or may hold its
// address for its owner; empty if there is none. It uses IPPools read after the given time.
// Without reservations, it reads nothing.
func (b *Overlapping) heldBy(ctx context.Context, some []*burial, since time.Time) ([]string, error) {
	if len(some) == 0 {
		return nil, nil
	}
	pools, err := b.poolsSince(ctx, since)
	if err != nil {
		return nil, err
	}
	held, networks := make([]string, len(some)), make([]string, len(some))
	for i, u := range some {
		networks[i] = networkOf(u.r)
	}
	for _, p := range pools {
		for i, u := range some {
			podRef := u.r.Owner.Pod.String()
			if held[i] == "" && p.mayBeOf(networks[i]) && (p.undecoded.has(podRef) || p.holds(u.r.IP, podRef)) {
				held[i] = p.pool()
			}
		}
	}
	return held, nil
}

// networkOf returns the network in the name of an overlapping reservation; empty for
// an unnamed network.
func networkOf(r ipam.Allocation) string {
	return strings.TrimSuffix(strings.TrimSuffix(r.Key, normalizeIP(r.IP)), "-")
}

// mayBeOf reports whether the plugin may use the IPPool for the network. The name of an IPPool
// of a named network begins with that name. The name of an IPPool of an unnamed network may
// begin with a node, which cannot be told from a network.
func (h holder) mayBeOf(network string) bool {
	return network == "" || h.name == "" || strings.HasPrefix(h.name, network+"-")
}

// holds reports whether an entry of the IPPool holds, or may hold, the address for the pod. The
// range may be IPv4 written as IPv6, or contain such addresses.
func (h holder) holds(ip netip.Addr, podRef string) bool {
	if h.prefix.Addr().Is6() && ip.Is4() {
		ip = netip.AddrFrom16(ip.As16())
	}
	if !h.prefix.Contains(ip) {
		return false
	}
	if entry, held := h.allocations[keyOf(h.prefix, ip)]; held && mayName(entry, podRef) {
		return true
	}
	for _, key := range h.odd {
		if mayName(h.allocations[key], podRef) {
			return true
		}
	}
	return false
}

// mayName reports whether an entry names the pod, or may: one that cannot be decoded may name
// every pod whose name is in it.
func mayName(stored json.RawMessage, podRef string) bool {
	var e entry
	if err := kube.Decode(stored, &e); err != nil {
		return namesIn(stored).has(podRef)
	}
	return e.PodRef == podRef
}

// names are names of pods. A backslash stands for any.
type names map[string]bool

func (n names) has(podRef string) bool { return n[podRef] || n[`\`] }

// namesIn returns the names of pods that a JSON document may contain: each of its texts, and each
// part of one that a name could be. It decodes the texts, and one that still has a backslash may be
// any name. It takes each part whole: a document that names web-10 does not name web-1.
func namesIn(document json.RawMessage) names {
	names := make(names)
	tokens := json.NewDecoder(bytes.NewReader(document)) // a part of an answer that was decoded is JSON
	for token, err := tokens.Token(); err == nil; token, err = tokens.Token() {
		if text, ok := token.(string); ok {
			if names[text] = true; strings.Contains(text, `\`) {
				names[`\`] = true
			}
			for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return !strings.ContainsRune(ofNames, r) }) {
				names[part] = true
			}
		}
	}
	return names
}

// ofNames are the characters of namespace/name.
const ofNames = "abcdefghijklmnopqrstuvwxyz0123456789-./"
