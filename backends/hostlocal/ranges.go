package hostlocal

import (
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// addresses returns the subnet of a range, and the addresses in it that the plugin gives to
// pods. It reports false if the configuration does not have them: some have a word such as
// usePodCidr, which another plugin replaces with the subnet.
func (s span) addresses() (netip.Prefix, ipam.Spans, bool) {
	subnet, err := netip.ParsePrefix(s.Subnet)
	if err != nil || subnet.Addr().Is4In6() {
		return netip.Prefix{}, nil, false
	}
	subnet = subnet.Masked()
	whole := ipam.SpanOf(subnet)
	first, last := whole.First.Next(), whole.Last
	if subnet.Addr().Is4() {
		last = last.Prev() // the broadcast address
	}
	gateway := first
	for _, set := range []struct {
		text  string
		value *netip.Addr
	}{{s.RangeStart, &first}, {s.RangeEnd, &last}, {s.Gateway, &gateway}} {
		if set.text == "" {
			continue
		}
		if *set.value, err = netip.ParseAddr(set.text); err != nil {
			return netip.Prefix{}, nil, false
		}
	}
	usable := ipam.NewSpans(ipam.Span{First: first, Last: last})
	return subnet, usable.Without(ipam.NewSpans(ipam.Span{First: gateway, Last: gateway})), true
}

// size returns the first range of the network, IPv4 before IPv6, with the addresses of all
// ranges of its family. It reports false if they are unknown.
func (n network) size() (first netip.Prefix, usable ipam.Spans, ok bool) {
	var spans []ipam.Span
	for _, s := range n.ranges {
		subnet, some, ok := s.addresses()
		switch {
		case !ok:
			return netip.Prefix{}, nil, false
		case !first.IsValid() || subnet.Addr().Is4() && first.Addr().Is6():
			first, spans = subnet, some
		case subnet.Addr().Is4() == first.Addr().Is4():
			spans = append(spans, some...)
		}
	}
	return first, ipam.NewSpans(spans...), first.IsValid()
}
