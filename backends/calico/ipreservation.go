package calico

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An ipReservation is an IPReservation: ranges from which Calico allocates no
// address. An address in them that is allocated stays so until its pod frees it.
type ipReservation struct {
	name   string
	ranges []netip.Prefix
}

// readIPReservation decodes an IPReservation, which has the same fields in every
// datastore. If name is empty, it takes the name in the metadata.
func readIPReservation(name string, data []byte) (ipReservation, error) {
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
	r := ipReservation{name: name}
	if err != nil {
		return r, fmt.Errorf("IPReservation %s: decode: %w", name, err)
	}
	for _, text := range fields.Spec.Reserved {
		if text = strings.TrimSpace(text); text == "" { // Calico skips it as well
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

// parseReserved parses a range, or a single address.
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

// protection returns the IPReservation that protects an address, in words. It
// returns an empty string if there is none.
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
