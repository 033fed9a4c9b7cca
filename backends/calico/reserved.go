package calico

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An ipReservation is an IPReservation: ranges of which Calico gives nothing away.
// What is in them stays allocated until its pod gives it back.
type ipAllocation struct {
	name   string
	ranges []netip.Prefix
}

// readIPReservation understands one, which has the same fields in every datastore.
// Without a name it goes by that in its metadata.
func readIPAllocation(name string, data []byte) (ipAllocation, error) {
	var fields struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Reserved []string `json:"reservedCIDRs"`
		} `json:"spec"`
	}
	err := kube.Decode(data, &fields)
	if name == "" {
		name = fields.Metadata.Name
	}
	r := ipAllocation{name: name}
	if err != nil {
		return r, fmt.Errorf("IPReservation %s: decode: %w", name, err)
	}
	for _, text := range fields.Spec.Reserved {
		if text = strings.TrimSpace(text); text == "" { // Calico passes over it as well
			continue
		}
		reserved, err := parseReserved(text)
		if err != nil {
			return r, fmt.Errorf("IPReservation %s: reservedCIDRs: %w", name, err)
		}
		r.ranges = append(r.ranges, reserved)
	}
	return r, nil
}

// parseReserved understands a range, or a single address.
func parseReserved(text string) (netip.Prefix, error) {
	reserved, err := netip.ParsePrefix(text)
	if !strings.Contains(text, "/") {
		var ip netip.Addr
		if ip, err = netip.ParseAddr(text); err == nil {
			reserved, err = ip.Prefix(ip.BitLen())
		}
	}
	if err == nil && (reserved.Addr().Is4In6() || strings.Contains(text, "%")) {
		err = fmt.Errorf("%q is an address that no block has", text)
	}
	return reserved, err
}

// protection says by what an address is kept back; nothing where it is not.
func (l listing) protection(ip netip.Addr) string {
	for _, r := range l.reserved {
		for _, reserved := range r.ranges {
			if reserved.Contains(ip) {
				return "Calico's IPReservation " + r.name
			}
		}
	}
	return ""
}
