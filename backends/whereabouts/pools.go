package whereabouts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// PoolsName is the name of the backend that NewPools returns.
const PoolsName = "whereabouts"

// Pools is the backend for the allocations in IPPools of all namespaces, networks and node
// slices. An allocation's token is the entry as stored: a pod that adopts the entry rewrites
// its id, and then the release fails. Pools is safe for concurrent use.
type Pools struct {
	client   rest.Interface
	lists    *lists
	settings Settings

	room   *semaphore.Weighted // pools being released take some of it
	narrow int64               // the least that a pool takes

	mu    sync.Mutex
	last  survey           // of the last listing
	sizes map[string]int64 // how many allocations each pool had then
}

// largePool is how many allocations the pools that are released at the same time may have in
// total, unless one alone has more. For each write, the API server decodes, checks and encodes
// the whole pool: one of 4,000 allocations takes half a second of CPU time. Several at the same
// time would leave none to other clients.
const largePool = 500

// NewPools returns the backend over a kube.RawClient. It releases at most atOnce pools at the same
// time.
func NewPools(client rest.Interface, s Settings, atOnce int) *Pools {
	return &Pools{
		client: client, lists: &lists{client: client}, settings: s,
		room: semaphore.NewWeighted(largePool), narrow: int64((largePool + atOnce - 1) / max(1, atOnce)),
	}
}

// Name implements ipam.Backend.
func (*Pools) Name() string { return PoolsName }

// List implements ipam.Backend. The allocations of a pool are sorted by address, those without
// one first.
func (b *Pools) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		listed := b.lists.ofRound(ctx, false)
		if listed.noPools != nil {
			yield(ipam.Pool{}, listed.noPools)
			return
		}
		s := listed.survey()
		b.mu.Lock()
		b.last = s
		b.sizes = make(map[string]int64)
		b.mu.Unlock()
		protections := listed.protections(b.settings, listed.noReservations, overlappingKind)
		s.listed(enginePools(listed.pools, &s, protections))(func(p ipam.Pool, err error) bool {
			b.mu.Lock()
			b.sizes[p.Name] = int64(len(p.Allocations))
			b.mu.Unlock()
			return yield(p, err)
		})
	}
}

// enginePools returns the IPPools of a listing as pools of the engine.
func enginePools(pools []ipPool, s *survey, by protections) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		for _, p := range pools {
			var err error
			if p.broken != nil {
				err = &ipam.PoolError{Pool: p.pool(), Err: p.broken, Range: rangeInName(p.name)}
			}
			p.node = s.nodeOf(p)
			u := p.enginePool()
			by.protect(&u, func(a ipam.Allocation) string { return a.Token })
			if !yield(u, err) {
				return
			}
		}
	}
}

// An operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Release implements ipam.Backend. It releases from several pools at the same time.
func (b *Pools) Release(ctx context.Context, ws []ipam.Warrant) []error {
	takes := func(pool string) int64 {
		b.mu.Lock()
		defer b.mu.Unlock()
		return min(max(b.sizes[pool], b.narrow), largePool)
	}
	return ipam.EachPool(ctx, ws, b.room, takes, func(pool string, ws []ipam.Warrant) []error {
		return b.releasePool(ctx, pool, ws)
	})
}

// releasePool releases entries of one pool with one JSON patch that tests and removes each
// entry. The patch does not test the pool's resourceVersion, so that the plugin may add and
// remove other entries meanwhile. Every write of the plugin tests it, so the plugin cannot
// bring back a removed entry.
func (b *Pools) releasePool(ctx context.Context, pool string, ws []ipam.Warrant) []error {
	errs := make([]error, len(ws))
	entries := make(map[int]ipam.Allocation, len(ws))
	var patch []operation
	for i, w := range ws {
		r, err := w.Allocation()
		if err != nil {
			errs[i] = err
			continue
		}
		entries[i] = r
		// Keys are decimal numbers here, so the path needs no escaping.
		path := "/spec/allocations/" + r.Key
		patch = append(patch,
			operation{Op: "test", Path: path, Value: json.RawMessage(r.Token)},
			operation{Op: "remove", Path: path})
	}
	if len(patch) == 0 {
		return errs
	}
	err := b.patch(ctx, pool, patch)
	if apierrors.IsInvalid(err) {
		b.explain(ctx, pool, entries, err, errs)
		return errs
	}
	if gone(err, poolResource, pool) {
		err = nil // the entries are gone with the pool
	}
	for i := range entries {
		errs[i] = kube.Unsure(kube.Transient(err))
	}
	return errs
}

// metadataOfOne asks the API server to answer with only the metadata of an object.
const metadataOfOne = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// patch applies all operations or none. The body of the answer does not matter. client-go would
// wait inside the request when the API server asks it to, and meanwhile the warrants would
// expire: MaxRetries(0) forbids that.
func (b *Pools) patch(ctx context.Context, pool string, patch []operation) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("%w: encode the patch: %w", ipam.ErrKept, err)
	}
	namespace, name := splitPool(pool)
	err = onResource(b.client.Patch(types.JSONPatchType), poolResource).Namespace(namespace).Name(name).
		SetHeader("Accept", metadataOfOne).MaxRetries(0).Body(body).Do(ctx).Error()
	return kube.Denied(err, poolKind+" "+pool)
}

// explain finds out why the API server refused a patch as invalid, and sets the answer for each
// entry. If a test failed because one entry changed, the others may go in another patch. If the
// pool would not satisfy its schema, the API server names the fields, and another try would not
// help.
func (b *Pools) explain(ctx context.Context, pool string, entries map[int]ipam.Allocation, refusal error, errs []error) {
	p, err := b.pool(ctx, pool)
	if gone(err, poolResource, pool) {
		err = nil // and so are the entries
	}
	schema := len(causes(refusal)) > 0
	for i, r := range entries {
		entry, held := p.allocations[r.Key]
		switch {
		case err != nil:
			errs[i] = kube.Transient(err)
		case !held:
			errs[i] = nil
		case !bytes.Equal(entry, []byte(r.Token)):
			errs[i] = fmt.Errorf("%w: it is now %s", ipam.ErrChanged, entry)
		case schema:
			errs[i] = fmt.Errorf("the API server refuses the pool without the entry; correct the field it names: %w", refusal)
		default:
			errs[i] = fmt.Errorf("%w: another entry of the pool changed", ipam.ErrAgain)
		}
	}
}

// causes returns the fields that break the schema, as the API server names them; none if it
// refused for another reason.
func causes(refusal error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(refusal, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// pool reads an IPPool.
func (b *Pools) pool(ctx context.Context, pool string) (ipPool, error) {
	data, err := getRaw(ctx, b.client, poolResource, pool)
	if err != nil {
		return ipPool{}, err
	}
	p := readPool(data)
	return p, p.broken
}

// enginePool returns an IPPool as a pool of the engine.
func (p ipPool) enginePool() ipam.Pool {
	u := ipam.Pool{Name: p.pool(), Range: p.prefix, Network: p.place().network, Capacity: handedOut(p.prefix).Count()}
	u.Allocations = make([]ipam.Allocation, 0, len(p.allocations))
	for key, entry := range p.allocations {
		u.Allocations = append(u.Allocations, p.allocation(key, entry))
	}
	slices.SortFunc(u.Allocations, func(a, b ipam.Allocation) int {
		return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.Key, b.Key))
	})
	return u
}

// An entry is one of spec.allocations.
type entry struct {
	ContainerID string `json:"id"`
	PodRef      string `json:"podref"`
	IfName      string `json:"ifname"`
	Claim       string `json:"ipamclaimref"`
}

// allocation decodes one entry.
func (p ipPool) allocation(key string, stored json.RawMessage) ipam.Allocation {
	r := ipam.Allocation{Key: key, Token: string(stored)}
	ip, err := addressAt(p.prefix, key)
	if err != nil {
		r.Unreadable = err.Error()
	}
	r.IP = ip
	var e entry
	if r.UnknownField, err = kube.DecodeKnown(stored, "spec.allocations["+key+"]", &e); err != nil {
		r.Unreadable = fmt.Sprintf("allocation %s: %v", key, err)
		return r
	}
	e.ContainerID, e.PodRef, e.IfName = sharedPart(r.Token, e.ContainerID), sharedPart(r.Token, e.PodRef), sharedPart(r.Token, e.IfName)
	r.Owner = ipam.Owner{Pod: readOwner(e.PodRef), Sandbox: e.ContainerID, Interface: e.IfName, Node: p.node}
	// An ADD adopts only an entry of its own pod and interface (AssignIP in pkg/allocate of
	// v0.9.4), and every ADD has an interface. Only versions before 0.8 wrote entries without
	// one, and they adopt none. With node slices, it looks only into the pool of its own node. What a
	// later version with another field adopts is unknown.
	switch {
	case e.Claim != "" || r.UnknownField != "":
	case e.IfName == "":
		r.Adoption = ipam.NeverAdopted
	case p.node != "":
		r.Adoption = ipam.AdoptedOnNode
	}
	if r.Unreadable == "" && r.Owner.Pod.Namespace != "" {
		r.Group = groupOf(p.pool(), key, e.PodRef)
	}
	return r
}

// sharedPart returns the part of the text that equals the given one, so that both share memory:
// this saves a tenth of a large listing. If the text lacks the part, it returns the given one.
func sharedPart(text, part string) string {
	if i := strings.Index(text, part); i >= 0 {
		return text[i : i+len(part)]
	}
	return part
}
