package whereabouts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// OverlappingName is the name of the backend that NewOverlapping returns.
const OverlappingName = "overlapping"

// Overlapping is the backend for OverlappingRangeIPReservations: one object for
// each address that ranges may share. It must release after Pools, because an
// overlapping reservation is kept while a pool holds its address. It is safe for
// concurrent use.
//
// A resourceVersion does not show that a pod uses the address again: a pod that
// comes back under the same name finds its own name in the object and writes
// nothing. So a release first replaces the owner by a tombstone, and then looks
// whether the owner exists.
type Overlapping struct {
	client rest.Interface
	begun  sync.Map // by pool: an earlier try may have left a tombstone

	mu     sync.Mutex
	pools  []json.RawMessage // the IPPools, read at readAt
	readAt time.Time
}

// NewOverlapping returns the backend over a client of
// whereabouts.cni.cncf.io/v1alpha1.
func NewOverlapping(client rest.Interface) *Overlapping { return &Overlapping{client: client} }

// Name implements reaper.Backend.
func (*Overlapping) Name() string { return OverlappingName }

// List implements reaper.Backend. Every overlapping reservation is a pool of its
// own.
func (b *Overlapping) List(ctx context.Context) iter.Seq2[reaper.Pool, error] {
	return func(yield func(reaper.Pool, error) bool) {
		b.forgetPools()
		items, err := list(ctx, b.client, overlappingResource)
		if err != nil {
			yield(reaper.Pool{}, err)
			return
		}
		pools, err := list(ctx, b.client, poolResource)
		if err != nil && !errors.Is(err, reaper.ErrNotInstalled) {
			yield(reaper.Pool{}, err)
			return
		}
		excluded, err := listExclusions(ctx, b.client)
		if err != nil {
			yield(reaper.Pool{}, err)
			return
		}
		overlappingPools(items, readPools(pools), excluded)(yield)
	}
}

// forgetPools makes the next release read the IPPools. Between two listings of one
// run, Pools has released allocations that the IPPools read before still contain.
func (b *Overlapping) forgetPools() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pools, b.readAt = nil, time.Time{}
}

// overlappingPools decodes the overlapping reservations of a listing. The IPPools
// are by namespace.
func overlappingPools(items []json.RawMessage, pools map[string][]ipPool, excluded exclusions) iter.Seq2[reaper.Pool, error] {
	return func(yield func(reaper.Pool, error) bool) {
		for _, item := range items {
			var o object
			pool := reaper.Pool{}
			err := kube.Decode(item, &o)
			if err == nil {
				pool = overlappingPool(o, pools[o.Metadata.Namespace])
				excluded.protect(&pool)
			} else {
				err = &reaper.PoolError{Pool: o.pool(), Err: err}
			}
			if !yield(pool, err) {
				return
			}
		}
	}
}

// overlappingPool decodes one overlapping reservation.
func overlappingPool(o object, pools []ipPool) reaper.Pool {
	r := reaper.Allocation{
		Key:     o.Metadata.Name,
		Token:   token(o),
		Created: o.Metadata.CreationTimestamp.Time,
	}
	u := reaper.Pool{Name: o.pool()}
	name, err := parseName(o.Metadata.Name, pools)
	if err != nil {
		r.Unreadable = err.Error()
	} else {
		r.IP = name.ip
		u.Network = cmp.Or(name.network, unnamed)
	}
	var spec v1alpha1.OverlappingRangeIPReservationSpec
	if err := kube.Decode(o.Spec, &spec); err != nil {
		r.Unreadable = fmt.Sprintf("spec: %v", err)
	}
	podRef := spec.PodRef
	if podRef == tombstone {
		podRef = o.Metadata.Annotations[ownerAnnotation]
		r.Interrupted = podRef != tombstone && readOwner(podRef).Namespace != ""
		if !r.Interrupted {
			podRef, r.Unreadable = "", "its release has begun, and the annotation "+ownerAnnotation+" names no owner: set it to namespace/name of the owner"
		}
	}
	r.Owner = reaper.Owner{Sandbox: spec.ContainerID, Interface: spec.IfName}
	if podRef != "" {
		r.Owner.Pod = readOwner(podRef)
	}
	u.Allocations = []reaper.Allocation{r}
	return u
}

// readPools decodes the IPPools, by namespace. It leaves out a namespace with an
// IPPool that cannot be decoded: that pool might support another reading of a name.
func readPools(items []json.RawMessage) map[string][]ipPool {
	pools := make(map[string][]ipPool)
	var doubtful []string
	for _, item := range items {
		p, err := readPool(item)
		if err != nil {
			doubtful = append(doubtful, p.Metadata.Namespace)
		}
		pools[p.Metadata.Namespace] = append(pools[p.Metadata.Namespace], p)
	}
	for _, namespace := range doubtful {
		delete(pools, namespace)
	}
	return pools
}

// heldBy returns the IPPool that holds, or may hold, the address for this owner. It
// returns an empty string if there is none. It reads the IPPools again unless they
// were read after the given time. Concurrent calls share one reading.
//
// Few IPPools name the owner of an overlapping reservation that is due, so heldBy
// decodes only those that do: the API server writes a podref as it is, without
// escapes.
func (b *Overlapping) heldBy(ctx context.Context, r reaper.Allocation, since time.Time) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.readAt.After(since) {
		readAt := time.Now()
		items, err := list(ctx, b.client, poolResource)
		if err != nil {
			return "", err
		}
		b.pools, b.readAt = items, readAt
	}
	podRef := []byte(r.Owner.Pod.String())
	for _, item := range b.pools {
		if !bytes.Contains(item, podRef) {
			continue
		}
		p, err := readPool(item)
		if err != nil && bytes.Contains(p.Spec, podRef) {
			return p.pool(), nil
		}
		for key, entry := range p.allocations {
			if !bytes.Contains(entry, podRef) {
				continue
			}
			held := p.allocation(key, entry)
			if held.Owner.Pod == r.Owner.Pod && (held.IP == r.IP || !held.IP.IsValid()) {
				return p.pool(), nil
			}
		}
	}
	return "", nil
}
