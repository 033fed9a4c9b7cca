package calico

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An ipReservation is an IPReservation: ranges from which Calico allocates no
// address. An address in them that is already allocated stays so until its pod
// frees it.
type ipReservation struct {
	name   string
	ranges []netip.Prefix

	// broken is why it cannot be decoded; nil if it can. If its list of ranges cannot be decoded,
	// it has all addresses. An item in the list that is not a range has none: Calico ignores it
	// too.
	broken error
}

// everyAddress are the ranges of an IPReservation whose list cannot be decoded.
var everyAddress = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// unknown reports whether its list of ranges cannot be decoded.
func (r ipReservation) unknown() bool { return r.broken != nil && slices.Equal(r.ranges, everyAddress) }

// reservedBy names the IPReservation that has an address. It returns an empty string if there
// is none.
func reservedBy(all []ipReservation, ip netip.Addr) string {
	for _, r := range all {
		for _, reserved := range r.ranges {
			if reserved.Contains(ip) {
				return "Calico's IPReservation " + r.name
			}
		}
	}
	return ""
}

// ipReservations reads all of Calico's IPReservations. It returns none if Calico does not have the
// resource, as before 3.22.
func ipReservations(ctx context.Context, store datastore) ([]ipReservation, error) {
	stored, err := store.resources(ctx, "ipreservations")
	if err != nil && !errors.Is(err, errUndefined) {
		return nil, fmt.Errorf("list Calico's IPReservations, which protect addresses: %w", err)
	}
	all := make([]ipReservation, len(stored))
	for i, one := range stored {
		all[i] = readIPReservation(one)
	}
	return all, nil
}

// readIPReservation decodes an IPReservation.
func readIPReservation(stored resource) ipReservation {
	var fields struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Reserved []string `json:"reservedCIDRs"`
		} `json:"spec"`
	}
	err := kube.Decode(stored.data, &fields)
	r := ipReservation{name: cmp.Or(stored.name, fields.Metadata.Name)}
	if err != nil {
		r.ranges, r.broken = everyAddress, fmt.Errorf("decode: %w", err)
		return r
	}
	for _, text := range fields.Spec.Reserved {
		if text = strings.TrimSpace(text); text == "" { // Calico skips it as well
			continue
		}
		reserved, err := parseReserved(text)
		if err != nil {
			r.broken = fmt.Errorf("reservedCIDRs: %w", err)
			continue
		}
		r.ranges = append(r.ranges, reserved)
	}
	return r
}

// parseReserved parses a range, or a single address. As in Calico, an IPv4 range may be written in
// IPv6 form.
func parseReserved(text string) (netip.Prefix, error) {
	reserved, err := netip.ParsePrefix(text)
	if !strings.Contains(text, "/") {
		var ip netip.Addr
		if ip, err = netip.ParseAddr(text); err == nil {
			reserved, err = ip.Prefix(ip.BitLen())
		}
	}
	const inIPv6 = 96 // the bits of an IPv6 address before the IPv4 address in it
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a CIDR", text)
	case strings.Contains(text, "%"), reserved.Addr().Is4In6() && reserved.Bits() < inIPv6:
		return netip.Prefix{}, fmt.Errorf("%q is an address that no block has", text)
	case reserved.Addr().Is4In6():
		return netip.PrefixFrom(reserved.Addr().Unmap(), reserved.Bits()-inIPv6), nil
	}
	return reserved, nil
}
