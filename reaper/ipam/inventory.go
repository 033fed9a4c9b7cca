package ipam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// Status is how well a backend did. The zero value is failure.
type Status int

// The states of a backend, from worst to best.
const (
	StatusFailed  Status = iota // its store could not be listed
	StatusPartial               // some pools or releases failed
	StatusSkipped               // its store was not listed, and the message says why
	StatusOK
)

var statusWords = [...]string{StatusFailed: "failed", StatusPartial: "partial", StatusSkipped: "skipped", StatusOK: "ok"}

// String returns the word that reports use.
func (s Status) String() string { return statusWords[s] }

// A Listing has the pools of one backend.
type Listing struct {
	Backend string
	Status  Status
	Message string // the cause, if the status is not StatusOK
	Where   string // what a Locator says; empty for other backends, and if the store was skipped

	// Protects is set for the listing of a Protector, which has Protections in place of pools.
	Protects    bool
	Protections []Protection

	// Outside identifies a store outside the API server that the pods are read from; nil if the
	// store is in that API server.
	Outside *Store

	Pools []Pool

	// Networks are those of the store. Surveyed is set if they are all there, and so all that pools
	// are called is known.
	Networks []Network
	Surveyed bool

	// Whole is set if every allocation of the store was listed, but for those of pools that are too
	// large: Unlisted are the ranges of these.
	Whole    bool
	Unlisted []netip.Prefix

	Errors []error // the pools that could not be read, or the cause of the failure

	// Undecoded has an *ObjectError for each object, or list of objects, beside the pools that could not be
	// decoded, or read. That is no failure: a tenant may have written the object.
	Undecoded []error
}

// An Inventory has the listings of all backends, read before the census. Judging
// believes only an Inventory that TakeInventory made.
type Inventory struct {
	Listings []Listing

	ended time.Time // when the last listing was complete
}

// TakeInventory lists the backends concurrently, and then the protectors: what protects an
// allocation must be listed after it. A failure is recorded in the Listing of its backend and does
// not stop the others. A backend whose store is not installed is skipped, or has failed if it is
// required. The listings are in the order of the backends, and then of the protectors.
func TakeInventory(ctx context.Context, backends []Backend, required func(name string) bool, protectors ...Protector) Inventory {
	inv := Inventory{Listings: make([]Listing, len(backends)+len(protectors))}
	var stores, objects sync.WaitGroup
	for i, b := range backends {
		needed := required(b.Name())
		stores.Go(func() { inv.Listings[i] = list(ctx, b, needed) })
	}
	stores.Wait()
	for i, p := range protectors {
		objects.Go(func() { inv.Listings[len(backends)+i] = protectionsOf(ctx, p) })
	}
	objects.Wait()
	inv.ended = time.Now()
	return inv
}

// Ended returns when the last listing was complete; zero for the zero Inventory.
func (inv Inventory) Ended() time.Time { return inv.ended }

// Stores says how many stores were listed, and why the others were not.
func (inv Inventory) Stores() string {
	const room = 200 // bytes of a line for the cause of one failure
	listed := 0
	var others []string
	for _, l := range inv.Listings {
		switch l.Status {
		case StatusOK, StatusPartial:
			listed++
		case StatusSkipped:
			others = append(others, l.Backend+" skipped")
		default:
			others = append(others, l.Backend+" failed: "+printable.Shorten(l.Message, room))
		}
	}
	total := printable.Counted(len(inv.Listings), "store")
	if len(others) == 0 {
		return total
	}
	return fmt.Sprintf("%d of %s (%s)", listed, total, strings.Join(others, "; "))
}

// Allocations yields all allocations, in the order of the listings.
func (inv Inventory) Allocations() iter.Seq[*Allocation] {
	return func(yield func(*Allocation) bool) {
		for _, l := range inv.Listings {
			for _, pool := range l.Pools {
				for i := range pool.Allocations {
					if !yield(&pool.Allocations[i]) {
						return
					}
				}
			}
		}
	}
}

// Size returns the number of allocations.
func (inv Inventory) Size() int {
	n := 0
	for range inv.Allocations() {
		n++
	}
	return n
}

// Complete reports whether every backend that was not skipped listed all of its
// allocations.
func (inv Inventory) Complete() bool {
	return !slices.ContainsFunc(inv.Listings, func(l Listing) bool {
		return !l.Whole && l.Status != StatusSkipped
	})
}

// list returns the listing with all pools of a backend.
func list(ctx context.Context, b Backend, required bool) Listing {
	l := Listing{Backend: b.Name()}
	none := l
	located, isLocator := b.(Locator)
	if isLocator {
		l.Where = located.Locate().Where
	}
	l.Status, l.Whole = StatusOK, true
	for pool, err := range b.List(ctx) {
		var unreadable *PoolError
		var undecoded *ObjectError
		switch {
		case err == nil:
			for i := range pool.Allocations {
				pool.Allocations[i].listedIn(l.Backend, pool)
			}
			l.Pools = append(l.Pools, pool)
		case errors.As(err, &unreadable):
			l.Status, l.Whole = StatusPartial, false
			l.Errors = append(l.Errors, err)
		case errors.As(err, &undecoded):
			l.Undecoded = append(l.Undecoded, err)
			if undecoded.Range.IsValid() {
				l.Unlisted = append(l.Unlisted, undecoded.Range)
			}
		case errors.Is(err, ErrNotInstalled) && !required && len(l.Pools)+len(l.Errors)+len(l.Undecoded) == 0:
			none.Status, none.Message = StatusSkipped, printable.Error(err)
			return none
		default:
			none.Status, none.Message, none.Errors = StatusFailed, printable.Error(err), append(l.Errors, err)
			none.Undecoded, none.Where = l.Undecoded, l.Where
			return none
		}
	}
	if isLocator {
		if store := located.Locate(); store.Outside {
			l.Outside = &store
		}
	}
	if len(l.Errors) > 0 {
		l.Message = printable.Error(l.Errors[0])
	}
	return l
}

// listedIn sets the backend, the pool and the network of the allocation, and converts its
// address to the form in which pods show it.
func (a *Allocation) listedIn(backend string, pool Pool) {
	a.Backend, a.Pool, a.Network = backend, pool.Name, pool.Network
	a.IP = Shown(a.IP)
}

// MarshalJSON writes the status as its word.
func (s Status) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }
