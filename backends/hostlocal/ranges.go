package hostlocal

import (
	"context"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// addresses returns the subnet of a range, and the addresses in it that the plugin gives to
// pods. It reports false if the configuration does not have them: some have a word such as
// usePodCidr there, for which another plugin puts in the subnet.
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

// size returns the first range of the network, those of IPv4 before those of IPv6, with the
// addresses of all ranges of its family. It reports false if it is not known.
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

// Survey implements ipam.Surveyor. A network of IPv4 and IPv6 is as full as its range of
// IPv4 is.
func (b *Backend) Survey(ctx context.Context, pools []ipam.Pool) ([]ipam.Network, error) {
	p, err := readPlaces(ctx, b.settings)
	if err != nil {
		return nil, err
	}
	var all []ipam.Network
	for _, pool := range pools {
		first, usable, ok := p.own[pool.Name].size()
		if ok {
			all = append(all, ipam.Network{Name: pool.Name, Range: first, Known: true, Usable: usable, Pools: []string{pool.Name}})
		}
	}
	return all, nil
}

// inRange sets the range of a pool, as far as the configuration has it.
func (n network) inRange(pool *ipam.Pool) {
	first, usable, ok := n.size()
	if !ok {
		return
	}
	pool.Range, pool.Capacity = first, usable.Within(first).Count()
}
