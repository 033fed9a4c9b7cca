// Package azurecns releases addresses that Azure CNS holds for containers that are gone.
//
// CNS is Azure's daemon that gives a node's pods their addresses. It keeps them in memory, and
// listens on the node itself. So the backend has scope node: the container runtime says whether
// the container of an address still exists.
package azurecns

import (
	"context"
	"fmt"
	"iter"

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
