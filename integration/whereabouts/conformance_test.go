package whereabouts_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/backends/whereabouts"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

func TestPoolsConform(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backendtest.Store {
		return &pluginPools{fixture: newFixture(t)}
	})
}

func TestOverlappingConforms(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backendtest.Store {
		return &bareReservations{fixture: newFixture(t), sandboxes: map[string]string{}}
	})
}

// numbers assigns numbers to the suite's pools.
type numbers struct{ names []string }

// of returns the number of a pool, the same each time.
func (n *numbers) of(pool string) int {
	for i, name := range n.names {
		if name == pool {
			return i
		}
	}
	n.names = append(n.names, pool)
	return len(n.names) - 1
}

// pluginPools is a store of pools that the real plugin fills and empties, without reservations. It
// does one thing at a time: when two plugins wait for each other, a DEL may give up without an
// error.
type pluginPools struct {
	*fixture
	mu sync.Mutex
	numbers
	shared string // the only address of the pool "shared"
}

// Backend implements backendtest.Store.
func (p *pluginPools) Backend() ipam.Backend {
	return whereabouts.NewPools(p.client(), whereabouts.Settings{}, 32)
}

// Share implements backendtest.Sharer with a larger range.
func (p *pluginPools) Share(a ipam.Allocation, owner ipam.Owner) (ipam.Allocation, error) {
	p.shared = a.IP.String()
	return p.Reserve("shared", owner)
}

// network returns the network of a pool: the nth has 10.n.0.0/26. That of the pool "shared" has a part of the
// range 10.0.0.0/8.
func (p *pluginPools) network(pool string) plugin.Network {
	if pool == "shared" {
		return plugin.Network{Range: "10.0.0.0/8", RangeStart: p.shared, RangeEnd: p.shared, DisableOverlapping: true}
	}
	return plugin.Network{Range: fmt.Sprintf("10.%d.0.0/26", p.of(pool)), DisableOverlapping: true}
}

// pool returns the backend's name for a pool.
func (p *pluginPools) pool(pool string) string {
	return cluster.PoolNamespace + "/" + strings.ReplaceAll(p.network(pool).Range, "/", "-")
}

// Reserve implements backendtest.Store.
func (p *pluginPools) Reserve(pool string, owner ipam.Owner) (ipam.Allocation, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ips, err := p.plugin.Add(p.Context(), p.network(pool), plugin.Pod(owner.Pod), owner.Sandbox, owner.Interface)
	if err != nil {
		return ipam.Allocation{}, err
	}
	return ipam.Allocation{
		Pool: p.pool(pool), Key: strconv.Itoa(int(ips[0].As4()[3])), IP: ips[0],
		Owner: ipam.Owner{Pod: owner.Pod, Sandbox: owner.Sandbox, Interface: owner.Interface},
	}, nil
}

// Free implements backendtest.Store.
func (p *pluginPools) Free(pool string, owner ipam.Owner) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plugin.Del(p.Context(), p.network(pool), plugin.Pod(owner.Pod), owner.Sandbox, owner.Interface)
}

// Snapshot implements backendtest.Store.
func (p *pluginPools) Snapshot() (map[string]string, error) { return p.places(), nil }

// Spoil implements backendtest.Spoiler.
func (p *pluginPools) Spoil(pool string) (ipam.Allocation, error) {
	_, name := cutLast(p.pool(pool))
	p.patch("ippools", name, types.MergePatchType, `{"spec":{"allocations":{"junk":{"id":"junk","podref":"default/junk"}}}}`)
	return ipam.Allocation{Pool: p.pool(pool), Key: "junk"}, nil
}

// Obscure implements backendtest.Obscurer.
func (p *pluginPools) Obscure(pool string) error { return p.obscure(p.network(pool).Range) }

// obscure creates an attachment for a range, with an exclude that cannot be decoded.
func (f *fixture) obscure(of string) error {
	return f.CreateNetwork(f.Context(), shop, "odd", fmt.Sprintf(`{"ipam":{"type":"whereabouts","range":%q,"exclude":["nonsense"]}}`, of))
}

// bareReservations is a store of reservations without entries in pools, which is when they may be
// released. The plugin gives no address without an entry, so the reservations are written as the
// plugin writes them.
type bareReservations struct {
	*fixture
	mu sync.Mutex
	numbers
	sandboxes map[string]string // by the name of their reservation
}

// Backend implements backendtest.Store.
func (b *bareReservations) Backend() ipam.Backend {
	return whereabouts.NewOverlapping(b.client(), whereabouts.Settings{}, 32)
}

// Reserve implements backendtest.Store. It leaves a reservation of the same pod unchanged and skips
// one of another pod.
func (b *bareReservations) Reserve(pool string, owner ipam.Owner) (ipam.Allocation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	client := b.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(cluster.PoolNamespace)
	for last := range 62 {
		ip := netip.AddrFrom4([4]byte{10, byte(b.of(pool)), 0, byte(last + 1)})
		o := &v1alpha1.OverlappingRangeIPReservation{
			ObjectMeta: metav1.ObjectMeta{Name: ip.String()},
			Spec:       v1alpha1.OverlappingRangeIPReservationSpec{PodRef: owner.Pod.String(), IfName: owner.Interface},
		}
		_, err := client.Create(b.Context(), o, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			o, err = client.Get(b.Context(), ip.String(), metav1.GetOptions{})
		}
		if apierrors.IsNotFound(err) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return ipam.Allocation{}, err
		}
		if o.Spec.PodRef != owner.Pod.String() {
			continue
		}
		b.sandboxes[o.Name] = owner.Sandbox
		return ipam.Allocation{
			Pool: cluster.PoolNamespace + "/" + o.Name, Key: o.Name, IP: ip,
			Owner: ipam.Owner{Pod: owner.Pod, Interface: owner.Interface},
		}, nil
	}
	return ipam.Allocation{}, errors.New("the pool is full")
}

// Free implements backendtest.Store: the plugin deletes by name.
func (b *bareReservations) Free(_ string, owner ipam.Owner) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, sandbox := range b.sandboxes {
		if sandbox != owner.Sandbox {
			continue
		}
		delete(b.sandboxes, name)
		err := b.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(cluster.PoolNamespace).
			Delete(b.Context(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// Snapshot implements backendtest.Store.
func (b *bareReservations) Snapshot() (map[string]string, error) { return b.places(), nil }

// Spoil implements backendtest.Spoiler.
func (b *bareReservations) Spoil(string) (ipam.Allocation, error) {
	b.writeReservation("junk", "default/junk")
	return ipam.Allocation{Pool: cluster.PoolNamespace + "/junk", Key: "junk"}, nil
}

// Obscure implements backendtest.Obscurer.
func (b *bareReservations) Obscure(pool string) error {
	return b.obscure(fmt.Sprintf("10.%d.0.0/26", b.of(pool)))
}

// places returns the content of the store by the suite's names for entries, without UIDs and
// creation times of reservations, which a restore recreates.
func (f *fixture) places() map[string]string {
	f.Helper()
	places := map[string]string{}
	for object, content := range f.store().reborn {
		name := cluster.PoolNamespace + "/" + object
		if strings.Contains(content, `kind: "OverlappingRangeIPReservation"`) {
			name += "/" + object
		}
		places[name] = content
	}
	return places
}
