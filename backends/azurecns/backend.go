// Package azurecns releases addresses that Azure CNS holds for containers that are gone.
//
// CNS is Azure's daemon that gives a node's pods their addresses. It keeps them in memory, and
// listens on the node itself. So the backend has scope node: the container runtime says whether
// the container of an address still exists.
package azurecns

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Name is the name of the backend in policies, logs and reports.
const Name = "azurecns"

// poolName is the name of the only pool: all addresses that CNS has for this node. CNS frees
// the addresses of a container together, even those of different network containers.
const poolName = "cns"

// A Backend lists, releases and restores the addresses of one CNS. It is safe for concurrent
// use.
type Backend struct{ cns *client }

// New returns the backend over the CNS of the settings. It reads the certificate files, and
// makes no request.
func New(s *Settings) (*Backend, error) {
	cns, err := newClient(s)
	if err != nil {
		return nil, err
	}
	return &Backend{cns}, nil
}

// Name implements ipam.Backend.
func (*Backend) Name() string { return Name }

// List implements ipam.Backend. CNS has one pool. An unreadable answer ends the listing.
func (b *Backend) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		pool, err := b.list(ctx)
		if err != nil {
			err = fmt.Errorf("list %s: %w", b.cns.address, err)
		}
		if err != nil || len(pool.Allocations) > 0 || pool.Range.IsValid() {
			yield(pool, err)
		}
	}
}

// list returns the pool, including what protects the addresses of containers with other network
// interfaces.
func (b *Backend) list(ctx context.Context) (ipam.Pool, error) {
	s, err := b.cns.state(ctx)
	if err != nil {
		return ipam.Pool{}, err
	}
	keeps := make(map[string]string) // by key
	for _, a := range s.addresses {
		if _, asked := keeps[a.key]; asked || a.held() {
			continue
		}
		if keeps[a.key], err = b.otherInterface(ctx, a); err != nil {
			return ipam.Pool{}, err
		}
	}
	return s.pool(keeps), nil
}

// pool returns the addresses that are not free. keeps has, by container key, what protects the
// container's addresses.
func (s *state) pool(keeps map[string]string) ipam.Pool {
	p := ipam.Pool{Name: poolName, Range: s.span()}
	usable := int64(0)
	for _, a := range s.addresses {
		if a.State == available || a.State == assigned {
			usable++
		}
		if a.unreadable == "" && a.State == available {
			continue
		}
		r := s.allocation(a)
		r.Protected = keeps[a.key]
		p.Allocations = append(p.Allocations, r)
	}
	p.Capacity = big.NewInt(usable)
	return p
}

// allocation returns an address as listed. Its key is the address: a later CNS may give it
// another ID.
func (s *state) allocation(a *address) ipam.Allocation {
	r := ipam.Allocation{
		Key:          a.ip.String(),
		IP:           a.ip,
		Created:      a.Changed,
		UnknownField: a.unknownField,
		Token:        s.token(a),
	}
	switch {
	case a.unreadable != "":
		r.Key = a.id
		r.Unreadable = a.unreadable
	case a.State == assigned:
		r.Group = Name + " " + a.key
		r.ByRuntime = true
		r.Owner.Pod = ipam.PodRef{Namespace: a.Owner.Namespace, Name: a.Owner.Name}
		r.Owner.Sandbox = a.container
	default:
		r.Foreign = "an address that no pod has: its state in CNS is " + a.State
		if !a.Changed.IsZero() {
			r.Foreign += " since " + a.Changed.UTC().Format(time.RFC3339)
		}
		r.Foreign += ", and CNS itself holds it"
	}
	return r
}

// token returns a hash of everything that CNS shows about the address, and of what a release of
// its container frees.
func (s *state) token(a *address) string {
	freed := slices.Sorted(slices.Values(s.keys[a.key]))
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", a.raw, a.key, strings.Join(freed, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// span returns the smallest prefix that contains all IPv4 addresses or, if there are none, all
// IPv6 addresses. Without any address, it is invalid. CNS does not show their subnet.
func (s *state) span() netip.Prefix {
	var first netip.Prefix
	for _, a := range s.addresses {
		switch {
		case !a.ip.IsValid() || first.IsValid() && first.Addr().Is4() && !a.ip.Is4():
		case !first.IsValid() || a.ip.Is4() && !first.Addr().Is4():
			first = netip.PrefixFrom(a.ip, a.ip.BitLen())
		default:
			for !first.Contains(a.ip) {
				first = netip.PrefixFrom(first.Addr(), first.Bits()-1).Masked()
			}
		}
	}
	return first
}
