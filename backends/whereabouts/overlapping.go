package whereabouts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// OverlappingName is the name of the backend that NewOverlapping returns.
const OverlappingName = "overlapping"

// Overlapping is the backend for OverlappingRangeIPReservations: one object for each address
// that ranges may share. It must release after Pools, because it keeps an overlapping
// reservation while a pool holds its address. It is safe for concurrent use.
//
// A resourceVersion does not show that a pod uses the address again: a pod that comes back
// under the same name finds its own name in the object and writes nothing. So a release first
// replaces the owner with a tombstone, and then checks whether the owner exists.
type Overlapping struct {
	client   rest.Interface
	lists    *lists
	settings Settings
	atOnce   int // writes that one call of Release makes at the same time

	// begun has the objects, by pool, into which an earlier attempt put a tombstone, as it left
	// them.
	begun sync.Map

	mu     sync.Mutex      // held while the IPPools are read
	pools  []holder        // the IPPools as last read
	read   time.Time       // when their reading began; zero: they must be read
	ranges []attachedRange // of the last listing
}

// NewOverlapping returns the backend over a kube.RawClient. Two calls of Release together make at
// most atOnce writes at the same time.
func NewOverlapping(client rest.Interface, s Settings, atOnce int) *Overlapping {
	return &Overlapping{client: client, lists: &lists{client: client}, settings: s, atOnce: max(1, atOnce/2)}
}

// Name implements ipam.Backend.
func (*Overlapping) Name() string { return OverlappingName }

// List implements ipam.Backend. Every overlapping reservation is its own pool.
func (b *Overlapping) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		b.forget()
		listed := b.lists.ofRound(ctx, true)
		noPools := listed.noPools
		protections := listed.protections(b.settings, noPools, poolKind)
		if errors.Is(noPools, ipam.ErrNotInstalled) || ipam.IsUnread(noPools) {
			noPools = nil
		}
		if err := cmp.Or(listed.noReservations, noPools); err != nil {
			yield(ipam.Pool{}, err)
			return
		}
		s := listed.survey()
		b.mu.Lock()
		b.ranges = s.ranges
		b.mu.Unlock()
		s.listed(overlappingPools(listed.reservations, listed.pools, &s, protections))(yield)
	}
}

// forget makes the next release start afresh and read the IPPools. Between two listings of one
// run, Pools has released allocations that the IPPools read earlier still contain. A tombstone
// that an earlier attempt left is listed as Interrupted.
func (b *Overlapping) forget() {
	b.begun.Clear()
	b.mu.Lock()
	b.pools, b.read = nil, time.Time{}
	b.mu.Unlock()
}

// A reservation is an overlapping reservation as listed: the engine's pool for it, without what
// its name says. With an error, it has only the name.
type reservation struct {
	ipam.Pool
	err error
}

// readReservation decodes an overlapping reservation.
func readReservation(item json.RawMessage) reservation {
	var o object
	if err := kube.Decode(item, &o); err != nil {
		return reservation{ipam.Pool{Name: o.pool()}, err}
	}
	return reservation{unnamedPool(o), nil}
}

// overlappingPools returns the overlapping reservations of a listing as pools of the
// engine.
func overlappingPools(reservations []reservation, listed []ipPool, s *survey, by protections) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		placed := slices.Clone(listed)
		for i := range placed {
			placed[i].node = s.nodeOf(placed[i])
		}
		pools := byNamespace(placed)
		for _, r := range reservations {
			pool, err := r.Pool, r.err
			if err != nil {
				unread := &ipam.PoolError{Pool: r.Name, Err: err}
				if _, name := splitPool(r.Name); len(readings(name)) == 1 {
					ip := readings(name)[0].ip
					unread.Range = netip.PrefixFrom(ip, ip.BitLen())
				}
				pool, err = ipam.Pool{}, unread
			} else {
				namespace, _ := splitPool(r.Name)
				beside := pools[namespace]
				proving := beside.pools
				if beside.doubtful { // an IPPool that cannot be decoded might support another reading
					proving = nil
				}
				readName(&pool, proving)
				pool.Allocations[0].Group = groupFor(pool, beside.containing(pool.Allocations[0].IP))
				s.bindToSlice(&pool, beside)
				by.protect(&pool, func(a ipam.Allocation) string {
					listed, _ := readToken(a.Token) // token made it
					return string(listed.Spec)
				})
			}
			if !yield(pool, err) {
				return
			}
		}
	}
}

// readName adds what the name of an overlapping reservation says. The pools are the IPPools
// that settle an ambiguous name.
func readName(u *ipam.Pool, pools []ipPool) {
	a := &u.Allocations[0]
	name, err := parseName(a.Key, pools)
	if err != nil {
		a.Unreadable = err.Error()
		return
	}
	a.IP, u.Network = name.ip, cmp.Or(name.network, unnamed)
}

// unnamedPool decodes everything in an overlapping reservation but its name.
func unnamedPool(o object) ipam.Pool {
	u := ipam.Pool{Name: o.pool()}
	r := ipam.Allocation{Key: sharedPart(u.Name, o.Metadata.Name), Token: token(o), Created: o.Metadata.CreationTimestamp.Time}
	if err := o.Metadata.Deleting(); err != nil {
		r.Deleting = err.Error()
	}
	stored := o.Spec
	if hasTombstone(o.Spec) {
		var err error
		if stored, err = replaced(o); err != nil {
			r.Unreadable = err.Error()
		}
		r.Interrupted = err == nil
	}
	var spec overlappingSpec
	unknown, err := kube.DecodeKnown(stored, "spec", &spec)
	if err != nil && r.Unreadable == "" {
		r.Unreadable = fmt.Sprintf("spec: %v", err)
	}
	// It stays Adoptable: an ADD that meets a reservation of its own pod leaves it as it
	// is, even for another interface (IPManagementKubernetesUpdate in pkg/storage/kubernetes of
	// v0.9.4).
	spec.ContainerID, spec.PodRef, spec.IfName = sharedPart(r.Token, spec.ContainerID), sharedPart(r.Token, spec.PodRef), sharedPart(r.Token, spec.IfName)
	r.UnknownField, r.Owner = unknown, ownerOf(spec)
	u.Allocations = []ipam.Allocation{r}
	return u
}

// An overlappingSpec is the spec of an overlapping reservation.
type overlappingSpec struct {
	v1alpha1.OverlappingRangeIPReservationSpec
	Claim string `json:"ipamclaimref"`
}

// ownerOf returns the owner that a spec names. A podref that names no pod leaves out the
// sandbox too, so that the overlapping reservation is held. A tombstone in place of such a
// podref could not be undone: the schema requires a podref.
func ownerOf(spec overlappingSpec) ipam.Owner {
	owner := ipam.Owner{Pod: readOwner(spec.PodRef), Interface: spec.IfName}
	if owner.Pod.Namespace != "" {
		owner.Sandbox = spec.ContainerID
	}
	return owner
}

// poolsOf are the IPPools of one namespace.
type poolsOf struct {
	pools    []ipPool // those that can be decoded
	doubtful bool     // an IPPool cannot be decoded

	// byRange has the pools by range. Node slices have thousands of ranges, and each
	// reservation is looked up in them.
	byRange map[netip.Prefix][]ipPool
}

// containing returns the pools whose range contains the address, largest range first.
func (p poolsOf) containing(ip netip.Addr) []ipPool {
	var all []ipPool
	for bits := 0; bits <= ip.BitLen(); bits++ {
		within, _ := ip.Prefix(bits) // no error: the length is in bounds
		all = append(all, p.byRange[within]...)
	}
	return all
}

// byNamespace returns the IPPools of each namespace.
func byNamespace(pools []ipPool) map[string]poolsOf {
	all := make(map[string]poolsOf)
	for _, p := range pools {
		of, known := all[p.Metadata.Namespace]
		if !known {
			of.byRange = make(map[netip.Prefix][]ipPool)
		}
		if p.broken != nil {
			of.doubtful = true
		} else {
			within := p.prefix.Masked()
			of.byRange[within] = append(of.byRange[within], p)
			of.pools = append(of.pools, p)
		}
		all[p.Metadata.Namespace] = of
	}
	return all
}
