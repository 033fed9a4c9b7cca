package reaper

import (
	"context"
	"encoding/json"
	"iter"
	"net/netip"
	"time"
)

// ReservedIPsName stands where the name of a backend would, in the records of
// ReservedIPs.
const ReservedIPsName = "reservedIPs"

// A ReservedIP is an object by which somebody keeps addresses back while their
// pod is gone: one of a resource that the policy names.
type ReservedIP struct {
	Pool string // the resource, as resource.version.group
	Key  string // namespace/name of the object, or its name alone

	// Whose addresses it keeps: these, or those of the pod. Either may be empty,
	// not both.
	IPs []netip.Addr
	Pod PodRef

	// TTL is how long the addresses are kept after the pod is gone; nil is for
	// good. Deleted is when that was, as the object says; zero where it does not.
	TTL     *time.Duration
	Deleted time.Time

	DeleteExpired bool // the policy has the object deleted after its addresses

	Token  string          // what Delete compares
	Stored json.RawMessage // the object, whole
}

// ReservedIPs are the reserved addresses of all resources that a policy names.
type ReservedIPs interface {
	// List returns them all, those of one resource one after the other. One that
	// cannot be understood is an error, since nobody knows then what it keeps.
	List(ctx context.Context) ([]ReservedIP, error)

	// Delete deletes the object if it is still as it was listed, and answers as
	// Backend.Release does. Of r it is given Pool, Key and Token.
	Delete(ctx context.Context, r ReservedIP) error

	// Restore puts deleted objects back, as Recorder.Restore does.
	Restore(ctx context.Context, pool string, rs []Record) []error
}

// reservedIPs is the backend over ReservedIPs: every resource is a pool, every
// object an entry, which is released after the addresses that it keeps back.
type reservedIPs struct{ ReservedIPs }

// NewReservedIPs returns the backend over them. It comes after all whose addresses
// they keep back.
func NewReservedIPs(r ReservedIPs) Recorder { return reservedIPs{r} }

// Name implements Backend.
func (reservedIPs) Name() string { return ReservedIPsName }

// List implements Backend.
func (b reservedIPs) List(ctx context.Context) iter.Seq2[Pool, error] {
	return func(yield func(Pool, error) bool) {
		all, err := b.ReservedIPs.List(ctx)
		if err != nil {
			yield(Pool{}, err)
			return
		}
		var pools []Pool
		for _, r := range all {
			if len(pools) == 0 || pools[len(pools)-1].Name != r.Pool {
				pools = append(pools, Pool{Name: r.Pool})
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
func (r ReservedIP) allocation() Allocation {
	entry := Allocation{
		Key: r.Key, Token: r.Token, Owner: Owner{Pod: r.Pod},
		Protects: &Protection{TTL: r.TTL, Deleted: r.Deleted, Deletable: r.DeleteExpired},
	}
	for _, ip := range r.IPs {
		entry.Protects.IPs = append(entry.Protects.IPs, asShown(ip))
	}
	if len(r.IPs) == 1 {
		entry.IP = r.IPs[0]
	}
	return entry
}

// Release implements Backend.
func (b reservedIPs) Release(ctx context.Context, pool string, ws []Warrant) []error {
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

// Record implements Recorder: the objects are read once more.
func (b reservedIPs) Record(ctx context.Context, rs []Allocation) ([]json.RawMessage, error) {
	all, err := b.ReservedIPs.List(ctx)
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
