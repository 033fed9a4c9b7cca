// Package reservedips is the backend for the operator's own resources that protect addresses
// while their pod is gone. Every resource is a pool, and every object an allocation. An object
// is released after the addresses that it protects.
package reservedips

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Name is the name of the backend.
const Name = "reservedIPs"

// A ReservedIP is an object that protects addresses while their pod is gone, as an allocation. The
// policy names its resource.
type ReservedIP struct {
	ipam.Allocation
	ipam.Protection
	Stored json.RawMessage // the whole object
}

// Name implements ipam.Backend.
func (*Backend) Name() string { return Name }

// List implements ipam.Backend. Every resource is a pool, and every object an
// allocation.
func (b *Backend) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		all, err := b.All(ctx)
		if err != nil {
			yield(ipam.Pool{}, err)
			return
		}
		var pools []ipam.Pool
		for _, r := range all {
			if r.Unreadable != "" && !yield(ipam.Pool{}, r.objectError()) {
				return
			}
			if len(pools) == 0 || pools[len(pools)-1].Name != r.Pool {
				pools = append(pools, ipam.Pool{Name: r.Pool})
			}
			last := &pools[len(pools)-1]
			last.Allocations = append(last.Allocations, r.allocation())
		}
		for _, u := range pools {
			if !yield(u, nil) {
				return
			}
		}
	}
}

// objectError returns the error for an object that cannot be decoded.
func (r ReservedIP) objectError() error {
	return &ipam.ObjectError{Object: r.Pool + " " + r.Key, Err: fmt.Errorf("%s; correct it, or delete it", r.Unreadable)}
}

// allocation returns the object as the engine lists it. It has an IP if it protects exactly one.
func (r ReservedIP) allocation() ipam.Allocation {
	protects := r.Protection // on its own, so that the stored object is not kept with it
	r.Protects = &protects
	if len(r.IPs) == 1 {
		r.IP = r.IPs[0]
	}
	return r.Allocation
}

// Release implements ipam.Backend.
func (b *Backend) Release(ctx context.Context, ws []ipam.Warrant) []error {
	errs := make([]error, len(ws))
	for i, w := range ws {
		r, err := w.Allocation()
		if err == nil {
			err = b.Delete(ctx, ReservedIP{Allocation: r})
		}
		errs[i] = err
	}
	return errs
}

// Record implements ipam.Backend. It rereads the objects.
func (b *Backend) Record(ctx context.Context, rs []ipam.Allocation) ([]json.RawMessage, error) {
	all, err := b.All(ctx)
	if err != nil {
		return nil, err
	}
	stored := make(map[[3]string]json.RawMessage, len(all))
	for _, r := range all {
		stored[[3]string{r.Pool, r.Key, r.Token}] = r.Stored
	}
	records := make([]json.RawMessage, len(rs))
	for i, r := range rs {
		records[i] = stored[[3]string{r.Pool, r.Key, r.Token}]
	}
	return records, nil
}
