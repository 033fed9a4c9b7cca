package whereabouts

import (
	"cmp"
	"iter"
	"net"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// An attachedRange is one range of a network attachment, with what it excludes. The
// plugin allocates no excluded address, but it may have allocated one before it was
// excluded.
//
// The plugin's configuration file on a node may exclude addresses, too. The API
// server does not have that file, so such an exclusion is unknown here.
type attachedRange struct {
	attachment string       // namespace/name
	network    string       // its network_name; empty: unnamed, or not known
	from       netip.Prefix // the range; not valid: any range
	exclude    []*net.IPNet

	// The plugin gives the addresses from first to last to pods. Both are not valid
	// if it is not sure that the plugin gives any.
	first, last netip.Addr

	// broken is why the exclude is not known; nil if it is known. Then the network
	// and the range are known as far as they could be decoded.
	broken error
}

// exclusions are what all network attachments exclude.
type exclusions struct {
	keeping []attachedRange // those that exclude addresses, or may exclude some
	giving  []attachedRange // those that surely give addresses to pods
	broken  []error         // a *reaper.PoolError for each attachment that cannot be decoded
}

// add adds the ranges of one attachment.
func (all *exclusions) add(attachment string, ranges []attachedRange) {
	broken := false
	for _, r := range ranges {
		r.attachment = attachment
		if r.broken != nil || len(r.exclude) > 0 {
			all.keeping = append(all.keeping, r)
		}
		if r.first.IsValid() {
			all.giving = append(all.giving, r)
		}
		if r.broken != nil && !broken {
			broken = true
			all.broken = append(all.broken, &reaper.PoolError{Pool: "network attachment " + attachment, Err: r.broken})
		}
	}
}

// beside yields an error for each attachment that cannot be decoded, and then the
// pools. So the listing is partial until the attachment is corrected.
func (all exclusions) beside(pools iter.Seq2[reaper.Pool, error]) iter.Seq2[reaper.Pool, error] {
	return func(yield func(reaper.Pool, error) bool) {
		for _, err := range all.broken {
			if !yield(reaper.Pool{}, err) {
				return
			}
		}
		pools(yield)
	}
}

// protect sets the protection of each excluded address in a pool.
func (all exclusions) protect(u *reaper.Pool) {
	if len(all.keeping) == 0 {
		return
	}
	for i := range u.Allocations {
		if r := &u.Allocations[i]; r.IP.IsValid() {
			r.Protected = all.protection(u.Network, r.IP)
		}
	}
}

// protection says what protects an address of a network; it is empty if nothing
// does. An attachment that excludes the address protects it, unless the plugin gives
// the same address to pods of another attachment. An attachment that cannot be
// decoded protects every address that it may be of.
func (all exclusions) protection(network string, ip netip.Addr) string {
	excludedBy := ""
	for _, r := range all.keeping {
		switch {
		case !r.mayBeOf(network, ip):
		case r.broken != nil:
			return "the network attachment " + r.attachment + " may exclude it: " + r.broken.Error()
		case excludedBy == "" && r.excludes(ip):
			excludedBy = r.attachment
		}
	}
	if excludedBy == "" {
		return ""
	}
	for _, r := range all.giving {
		if r.gives(network, ip) {
			return ""
		}
	}
	return "excluded by the network attachment " + excludedBy
}

// mayBeOf reports whether the address may be one of the range. As in supportedBy, a
// node may follow the network_name in the name of a pool. A pool without a network,
// or an attachment without a range, may be of any.
func (r attachedRange) mayBeOf(network string, ip netip.Addr) bool {
	if r.from.IsValid() && !r.from.Contains(ip) {
		return false
	}
	return network == "" || mayBeOf(network, r.network)
}

// gives reports whether the plugin surely gives the address to pods of the range's
// attachment.
func (r attachedRange) gives(network string, ip netip.Addr) bool {
	return cmp.Or(r.network, unnamed) == network && r.first.Compare(ip) <= 0 && ip.Compare(r.last) <= 0 && !r.excludes(ip)
}

// excludes reports whether the range excludes the address.
func (r attachedRange) excludes(ip netip.Addr) bool {
	address := net.IP(ip.AsSlice())
	for _, excluded := range r.exclude {
		if excluded.Contains(address) {
			return true
		}
	}
	return false
}
