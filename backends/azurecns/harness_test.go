package azurecns

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/azurecns/cnstest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// roomOfPool is how many addresses a pool of the suite has.
const roomOfPool = 32

// A node is the harness of one CNS, fake or real. It speaks to CNS as the CNI plugin does.
type node struct {
	t           testing.TB
	cns         *client
	byContainer bool

	mu    sync.Mutex
	pools []string
}

// serve serves a fake CNS with the addresses of two pools of the suite, and returns its URL.
func serve(t testing.TB, cns *cnstest.CNS) string {
	fill(cns)
	server := httptest.NewServer(cns)
	t.Cleanup(server.Close)
	return server.URL
}

// fill gives a fake CNS the addresses of two pools of the suite.
func fill(cns *cnstest.CNS) {
	ip := netip.MustParseAddr("10.241.0.4")
	for range 2 * roomOfPool {
		cns.Add("55022629-3854-499b-7133-5e6887959f4ea", ip)
		ip = ip.Next()
	}
}

// newNode returns the harness of the CNS at an address, and frees everything that it has
// assigned.
func newNode(t testing.TB, address string, byContainer bool) *node {
	t.Helper()
	cns, err := newClient(&Settings{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, cns: cns, byContainer: byContainer}
	s, err := cns.state(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for key := range s.keys {
		err := cns.assign(t.Context(), pathRelease, assignment{Container: key, Interface: key, Pod: pod{"a", "b"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// Backend implements backendtest.Store.
func (n *node) Backend() ipam.Backend {
	b, err := New(&Settings{Address: n.cns.address})
	if err != nil {
		n.t.Fatal(err)
	}
	return aged{b}
}

// ByRuntime implements backendtest.NodeStore.
func (*node) ByRuntime() {}

// An aged backend lists every allocation as an hour older. CNS itself says when an address was
// assigned, so nothing that the suite allocates would be old.
type aged struct{ *Backend }

// List implements ipam.Backend.
func (b aged) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		for pool, err := range b.Backend.List(ctx) {
			for i := range pool.Allocations {
				pool.Allocations[i].Created = pool.Allocations[i].Created.Add(-time.Hour)
			}
			if !yield(pool, err) {
				return
			}
		}
	}
}

// Reserve implements backendtest.Store. A sandbox may get addresses of both pools, like those
// of two families. CNS gives them in one request.
func (n *node) Reserve(pool string, owner ipam.Owner) (ipam.Allocation, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ctx := context.Background()
	s, err := n.cns.state(ctx)
	if err != nil {
		return ipam.Allocation{}, err
	}
	a := assignmentFor(owner, n.byContainer)
	for _, at := range s.addresses {
		if at.key == cmp.Or(map[bool]string{true: a.Container}[n.byContainer], a.Interface) {
			a.Addresses = append(a.Addresses, at.IP)
		}
	}
	if len(a.Addresses) > 0 {
		if err := n.cns.assign(ctx, pathRelease, a); err != nil {
			return ipam.Allocation{}, err
		}
	}
	at := n.free(s, pool)
	if at == nil {
		return ipam.Allocation{}, fmt.Errorf("pool %s is full", pool)
	}
	a.Addresses = append(a.Addresses, at.IP)
	if err := n.cns.assign(ctx, pathRequest, a); err != nil {
		return ipam.Allocation{}, err
	}
	if n.byContainer {
		var answer response
		nics := map[string]device{"eth0": {Type: infraNIC, Veth: "azv" + owner.Sandbox[56:]}}
		if err := n.cns.call(ctx, http.MethodPatch, pathEndpoint+owner.Sandbox, nics, &answer); err != nil {
			return ipam.Allocation{}, err
		}
	}
	return ipam.Allocation{
		Pool: poolName, Key: at.ip.String(), IP: at.ip, ByRuntime: true,
		Owner: ipam.Owner{Pod: owner.Pod, Sandbox: owner.Sandbox},
	}, nil
}

// assignmentFor returns the body of the CNI plugin's requests for a sandbox.
func assignmentFor(owner ipam.Owner, byContainer bool) assignment {
	a := assignment{Container: owner.Sandbox, Interface: owner.Sandbox, Pod: pod{owner.Pod.Name, owner.Pod.Namespace}, Name: "eth0"}
	if byContainer {
		a.Interface = owner.Sandbox[:8] + "-eth0"
	}
	return a
}

// free returns the first free address of a pool of the suite; nil if there is none.
func (n *node) free(s *state, pool string) *address {
	at := slices.Index(n.pools, pool)
	if at < 0 {
		at = len(n.pools)
		n.pools = append(n.pools, pool)
	}
	room := slices.SortedFunc(slices.Values(s.addresses), func(a, b *address) int { return a.ip.Compare(b.ip) })[at*roomOfPool:][:roomOfPool]
	if i := slices.IndexFunc(room, func(a *address) bool { return a.State == available }); i >= 0 {
		return room[i]
	}
	return nil
}

// Free implements backendtest.Store.
func (n *node) Free(_ string, owner ipam.Owner) error {
	return n.cns.assign(context.Background(), pathRelease, assignmentFor(owner, n.byContainer))
}

// Snapshot implements backendtest.Store. Each entry has the record of its container.
func (n *node) Snapshot() (map[string]string, error) {
	ctx := context.Background()
	s, err := n.cns.state(ctx)
	if err != nil {
		return nil, err
	}
	snapshot := make(map[string]string)
	for _, a := range s.addresses {
		if a.State == available {
			continue
		}
		text := fmt.Sprint(a.State, a.IP, a.Network)
		if a.Owner != nil {
			text += fmt.Sprintf(" %+v", *a.Owner)
		}
		if n.byContainer && a.container != "" {
			interfaces, err := n.cns.endpoint(ctx, a.container)
			if err != nil {
				return nil, err
			}
			text += fmt.Sprintf(" %s", interfaces)
		}
		snapshot[poolName+"/"+s.allocation(a).Key] = text
	}
	return snapshot, nil
}

// Spoil implements backendtest.Spoiler: it gives an address to a container with an ID that no
// container runtime makes.
func (n *node) Spoil(pool string) (ipam.Allocation, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, err := n.cns.state(context.Background())
	if err != nil {
		return ipam.Allocation{}, err
	}
	at := n.free(s, pool)
	a := assignment{Container: "898fb8f1-f93e", Interface: "898fb8f1-f93e", Pod: pod{"junk", "default"}, Addresses: []string{at.IP}, Name: "eth0"}
	return ipam.Allocation{Pool: poolName, Key: at.id}, n.cns.assign(context.Background(), pathRequest, a)
}
