// Package reservedips is the backend for the operator's own resources that protect addresses
// while their pod is gone. Every resource is a pool, and every object an allocation. An object
// is released after the addresses that it protects.
package reservedips

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/netip"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Name is the name of the backend.
const Name = "reservedIPs"

// A ReservedIP is an object that protects addresses while their pod is gone. The policy names
// its resource.
type ReservedIP struct {
	Pool string // resource.version.group
	Key  string // namespace/name of the object, or its name alone

	// The object protects these addresses, or those of the pod. Either may be empty.
	IPs []netip.Addr
	Pod ipam.PodRef

	// TTL is how long the addresses are kept after the pod is gone; nil means forever. Deleted
	// is when the pod was deleted; zero if the object does not say.
	TTL     *time.Duration
	Deleted time.Time

	DeleteExpired bool // delete the object after its addresses are released

	// Broken is why the object cannot be decoded; nil if it can. IPs and Pod are what can be
	// decoded. If it may name more addresses, these belong to pods in Namespaces, or to any if
	// Unbounded is set.
	Broken     error
	Namespaces []string
	Unbounded  bool

	Token  string          // the UID and the resourceVersion, which Delete compares
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
			if r.Broken != nil && !yield(ipam.Pool{}, r.objectError()) {
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
	return &ipam.ObjectError{Object: r.Pool + " " + r.Key, Err: fmt.Errorf("%w; correct it, or delete it", r.Broken)}
}

// allocation returns the object as an allocation. It has an IP if it protects
// exactly one.
func (r ReservedIP) allocation() ipam.Allocation {
	entry := ipam.Allocation{
		Key: r.Key, Token: r.Token, Owner: ipam.Owner{Pod: r.Pod},
		Protects: &ipam.Protection{
			IPs: r.IPs, TTL: r.TTL, Deleted: r.Deleted, Deletable: r.DeleteExpired,
			Namespaces: r.Namespaces, All: r.Unbounded,
		},
	}
	if r.Broken != nil {
		entry.Unreadable = r.Broken.Error()
	}
	if len(r.IPs) == 1 {
		entry.IP = r.IPs[0]
	}
	return entry
}

// Release implements ipam.Backend.
func (b *Backend) Release(ctx context.Context, ws []ipam.Warrant) []error {
	errs := make([]error, len(ws))
	for i, w := range ws {
		r, err := w.Allocation()
		if err == nil {
			err = b.Delete(ctx, ReservedIP{Pool: r.Pool, Key: r.Key, Token: r.Token})
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
