package whereabouts

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// heldBy returns the IPPool that holds, or may hold, the address for this owner. It
// returns an empty string if there is none. It reads the IPPools again unless they
// were read after the given time. Concurrent calls share one reading.
//
// Few IPPools name the owner of an overlapping reservation that is due, so heldBy
// decodes only those that do.
func (b *Overlapping) heldBy(ctx context.Context, r reaper.Allocation, since time.Time) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.readAt.After(since) {
		readAt := time.Now()
		items, err := list(ctx, b.client, poolResource)
		if err != nil {
			return "", err
		}
		b.pools, b.readAt = items, readAt
	}
	podRef := r.Owner.Pod.String()
	for _, item := range b.pools {
		if !mayName(item, podRef) {
			continue
		}
		p, err := readPool(item)
		switch {
		case !p.mayBeOf(networkOf(r)):
		case err != nil && hasText(item, podRef), err == nil && p.mayHold(r):
			return p.pool(), nil
		}
	}
	return "", nil
}

// networkOf returns the network in the name of an overlapping reservation; empty for
// an unnamed network.
func networkOf(r reaper.Allocation) string {
	return strings.TrimSuffix(strings.TrimSuffix(r.Key, normalizeIP(r.IP)), "-")
}

// mayBeOf reports whether the plugin may use the IPPool for the network. The name of
// each IPPool of a named network begins with that name. The IPPool of an unnamed
// network may begin with the name of a node, which cannot be told from a network.
func (p ipPool) mayBeOf(network string) bool {
	return network == "" || p.name == "" || strings.HasPrefix(p.name, network+"-")
}

// mayHold reports whether an entry of the IPPool holds, or may hold, the address for
// the owner of the allocation. An entry whose offset cannot be read may be any
// address of the range.
func (p ipPool) mayHold(r reaper.Allocation) bool {
	podRef := r.Owner.Pod.String()
	for key, entry := range p.allocations {
		if !mayName(entry, podRef) {
			continue
		}
		held := p.allocation(key, entry)
		unreadable := held.Owner == (reaper.Owner{})
		named := held.Owner.Pod == r.Owner.Pod || unreadable && hasText(entry, podRef)
		switch {
		case !named:
		case held.IP == r.IP, !held.IP.IsValid() && p.contains(r.IP):
			return true
		}
	}
	return false
}

// mayName reports whether a document may have the podref, without decoding it. The
// podref of a pod stands in JSON as it is, without escapes.
func mayName(document json.RawMessage, podRef string) bool {
	quoted, err := json.Marshal(podRef)
	escaped := err != nil || len(quoted) != len(podRef)+len(`""`)
	return escaped || bytes.Contains(document, []byte(podRef))
}

// contains reports whether the range contains the address. The range may be written
// as IPv4 in IPv6.
func (p ipPool) contains(ip netip.Addr) bool {
	return p.prefix.Contains(ip) || p.prefix.Contains(netip.AddrFrom16(ip.As16()))
}

// hasText reports whether a document has the text as a whole value. A document that
// cannot be decoded may have it.
func hasText(document json.RawMessage, text string) bool {
	var value any
	if json.Unmarshal(document, &value) != nil {
		return true
	}
	return isIn(text, value)
}

// isIn reports whether a decoded document has the text as a whole value.
func isIn(text string, value any) bool {
	switch value := value.(type) {
	case string:
		return value == text
	case []any:
		for _, element := range value {
			if isIn(text, element) {
				return true
			}
		}
	case map[string]any:
		for _, field := range value {
			if isIn(text, field) {
				return true
			}
		}
	}
	return false
}
