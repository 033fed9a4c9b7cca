// Package reservedips is the backend over resources of the operator's own that
// protect addresses while their pod is gone. Every resource is a pool, and every
// object an allocation, which is released after the addresses that it protects.
package reservedips

import (
	"context"
	"encoding/json"
	"iter"
	"net/netip"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Name is the name of the backend.
const Name = "reservedIPs"

// A ReservedIP is an object by which somebody keeps addresses back while their
// pod is gone: one of a resource that the policy names.
type ReservedIP struct {
	Pool string // the resource, as resource.version.group
	Key  string // namespace/name of the object, or its name alone

	// Whose addresses it keeps: these, or those of the pod. Either may be empty,
	// not both.
	IPs []netip.Addr
	Pod reaper.PodRef

	// TTL is how long the addresses are kept after the pod is gone; nil is for
	// good. Deleted is when that was, as the object says; zero where it does not.
	TTL     *time.Duration
	Deleted time.Time

	DeleteExpired bool // the policy has the object deleted after its addresses

	Token  string          // what Delete compares
	Stored json.RawMessage // the object, whole
}

var (
	_ reaper.Recorder  = (*Backend)(nil)
	_ reaper.Protector = (*Backend)(nil)
)

// ProtectsOthers implements reaper.Protector.
func (*Backend) ProtectsOthers() {}

// Name implements reaper.Backend.
func (*Backend) Name() string { return Name }

// List implements reaper.Backend: every resource is a pool, every object an
// allocation.
func (b *Backend) List(ctx context.Context) iter.Seq2[reaper.Pool, error] {
	return func(yield func(reaper.Pool, error) bool) {
		all, err := b.All(ctx)
		if err != nil {
			yield(reaper.Pool{}, err)
			return
		}
		var pools []reaper.Pool
		for _, r := range all {
			if len(pools) == 0 || pools[len(pools)-1].Name != r.Pool {
				pools = append(pools, reaper.Pool{Name: r.Pool})
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

// allocation is the object as an entry. Its address is shown where it has one.
func (r ReservedIP) allocation() reaper.Allocation {
	entry := reaper.Allocation{
		Key: r.Key, Token: r.Token, Owner: reaper.Owner{Pod: r.Pod},
		Protects: &reaper.Protection{IPs: r.IPs, TTL: r.TTL, Deleted: r.Deleted, Deletable: r.DeleteExpired},
	}
	if len(r.IPs) == 1 {
		entry.IP = r.IPs[0]
	}
	return entry
}

// Release implements reaper.Backend.
func (b *Backend) Release(ctx context.Context, pool string, ws []reaper.Warrant) []error {
	errs := make([]error, len(ws))
	for i, w := range ws {
		r, err := w.Allocation()
		if err == nil {
			err = b.Delete(ctx, ReservedIP{Pool: pool, Key: r.Key, Token: r.Token})
		}
		errs[i] = err
	}
	return errs
}

// Record implements reaper.Recorder: the objects are read once more.
func (b *Backend) Record(ctx context.Context, rs []reaper.Allocation) ([]json.RawMessage, error) {
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
