package reaper

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"
)

// Status is how well a backend did. The zero value is failure.
type Status int

// The states of a backend, from worst to best.
const (
	StatusFailed  Status = iota // nothing is known of its store
	StatusPartial               // some pools or releases failed
	StatusSkipped               // it was not looked at, and the message says why
	StatusOK
)

// String returns the word that reports use.
func (s Status) String() string {
	switch s {
	case StatusPartial:
		return "partial"
	case StatusSkipped:
		return "skipped"
	case StatusOK:
		return "ok"
	default:
		return "failed"
	}
}

// A Listing is what one backend listed.
type Listing struct {
	Backend string
	Status  Status
	Message string // why, where the status is not StatusOK

	// Protects is set where the allocations protect those of other backends
	// (Protector).
	Protects bool

	Pools []Pool

	errs []error
}

// An Inventory is what all backends listed before the census was taken. Only
// TakeInventory makes one that Judge believes.
type Inventory struct {
	Listings []Listing

	ended time.Time
}

// TakeInventory lists every backend, one after the other. What a backend could
// not read is in its Listing and does not stop the others. A backend in
// required must find its store; another is skipped where there is none.
func TakeInventory(ctx context.Context, backends []Backend, required func(name string) bool) Inventory {
	inv := Inventory{Listings: make([]Listing, 0, len(backends))}
	for _, b := range backends {
		inv.Listings = append(inv.Listings, list(ctx, b, required(b.Name())))
	}
	inv.ended = time.Now()
	return inv
}

// size returns the number of allocations.
func (inv Inventory) size() int {
	n := 0
	for _, l := range inv.Listings {
		for _, u := range l.Pools {
			n += len(u.Allocations)
		}
	}
	return n
}

// complete reports whether every entry was listed of every backend that was asked.
func (inv Inventory) complete() bool {
	return !slices.ContainsFunc(inv.Listings, func(l Listing) bool {
		return l.Status != StatusOK && l.Status != StatusSkipped
	})
}

// namesNodes reports whether any allocation says on which node it is.
func (inv Inventory) namesNodes() bool {
	for _, l := range inv.Listings {
		for _, u := range l.Pools {
			if slices.ContainsFunc(u.Allocations, func(r Allocation) bool { return r.Owner.Node != "" }) {
				return true
			}
		}
	}
	return false
}

// list reads one backend to its end.
func list(ctx context.Context, b Backend, required bool) Listing {
	l := listingOf(b, StatusOK, "")
	for pool, err := range b.List(ctx) {
		var unreadable *PoolError
		switch {
		case err == nil:
			for i := range pool.Allocations {
				r := &pool.Allocations[i]
				r.Backend, r.Pool = l.Backend, pool.Name
				r.IP = asShown(r.IP)
				if r.Protects != nil {
					protects := *r.Protects
					protects.IPs = slices.Clone(protects.IPs)
					for n, ip := range protects.IPs {
						protects.IPs[n] = asShown(ip)
					}
					r.Protects = &protects
				}
			}
			l.Pools = append(l.Pools, pool)
		case errors.As(err, &unreadable):
			l.Status = StatusPartial
			l.errs = append(l.errs, err)
		case errors.Is(err, ErrNotInstalled) && !required && len(l.Pools)+len(l.errs) == 0:
			return listingOf(b, StatusSkipped, err.Error())
		default:
			failed := listingOf(b, StatusFailed, err.Error())
			failed.errs = append(l.errs, err)
			return failed
		}
	}
	if len(l.errs) > 0 {
		l.Message = l.errs[0].Error()
	}
	return l
}

// listingOf is the listing of a backend without pools.
func listingOf(b Backend, status Status, message string) Listing {
	_, protects := b.(Protector)
	return Listing{Backend: b.Name(), Status: status, Message: message, Protects: protects}
}

// asShown returns an address as pods show it.
func asShown(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }
