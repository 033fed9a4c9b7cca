package calico

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// ipReservations are those of a datastore: ranges from which Calico gives an address only to a pod that
// asks for it. An address in them that is already allocated stays so until its pod frees it.
type ipReservations struct {
	all  []ipReservation
	lack error // why they are not known; nil if they are
}

// An ipReservation is an IPReservation.
type ipReservation struct {
	name   string
	ranges ipam.Spans

	// broken is why it cannot be decoded; nil if it can. If undecoded is set, that is its list of ranges.
	// An item in the list that is not a range has no address: Calico ignores it too.
	broken    error
	undecoded bool
}

// listIPReservations reads all of Calico's IPReservations. There are none if Calico does not have the
// resource, as before 3.22.
func listIPReservations(ctx context.Context, store datastore) ipReservations {
	stored, err := store.resources(ctx, "ipreservations")
	if ipam.IsUnread(err) {
		return ipReservations{lack: errors.New("the files do not list all of them")}
	}
	if err != nil && !errors.Is(err, errUndefined) {
		return ipReservations{lack: fmt.Errorf("list them: %w", err)}
	}
	all := make([]ipReservation, len(stored))
	for i, one := range stored {
		all[i] = readIPReservation(one)
	}
	return ipReservations{all: all}
}

// spans returns the addresses that are reserved. It reports false if that is not known.
func (r ipReservations) spans() (spans ipam.Spans, known bool) {
	if r.lack != nil {
		return nil, false
	}
	for _, one := range r.all {
		if one.undecoded {
			return nil, false
		}
		spans = append(spans, one.ranges...)
	}
	return ipam.NewSpans(spans...), true
}

// withheld says what reserves addresses.
func (r ipReservations) withheld() []ipam.Withheld {
	var all []ipam.Withheld
	for _, one := range r.all {
		if len(one.ranges) > 0 {
			all = append(all, ipam.Withheld{Addresses: one.ranges, Why: "reserved by Calico's IPReservation " + one.name})
		}
	}
	return all
}

// errors returns what could not be read of them.
func (r ipReservations) errors() []error {
	if r.lack != nil {
		err := fmt.Errorf("which addresses are reserved, and so how full networks are, is unknown: %w", r.lack)
		return []error{&ipam.ObjectError{Object: "Calico's IPReservations", Err: err}}
	}
	var all []error
	for _, one := range r.all {
		if one.broken != nil {
			err := fmt.Errorf("%w; correct it, or delete the IPReservation", one.broken)
			all = append(all, &ipam.ObjectError{Object: "Calico's IPReservation " + one.name, Err: err})
		}
	}
	return all
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
		r.undecoded, r.broken = true, fmt.Errorf("decode: %w", err)
		return r
	}
	var ranges []ipam.Span
	for _, text := range fields.Spec.Reserved {
		if text = strings.TrimSpace(text); text == "" { // Calico skips it as well
			continue
		}
		reserved, err := parseReserved(text)
		if err != nil {
			r.broken = fmt.Errorf("reservedCIDRs: %w", err)
			continue
		}
		ranges = append(ranges, ipam.SpanOf(reserved))
	}
	r.ranges = ipam.NewSpans(ranges...)
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
