package calico_test

import (
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The conformance suite takes long with the real plugin. The tests of races with a release also
// cover what etcd transactions refuse.
func TestBlocksConform(t *testing.T) { conform(t, calico.KubernetesT(t)) }

func TestEveryDatastoreConforms(t *testing.T) {
	if testing.Short() {
		t.Skip("TestBlocksConform is the sample")
	}
	conform(t, calico.EtcdT(t))
}

func conform(t *testing.T, d *calico.Datastore) {
	s := newFixture(t, d)
	// The plugin fills one block of a node before it takes another, so each node is one of the
	// suite's pools.
	for _, name := range []string{"four", "six"} {
		s.must(s.DeletePool(t.Context(), name))
	}
	s.must(s.ApplyPool(t.Context(), "thirty-two", calico.Pool4, 27))
	for _, pool := range []string{"a", "b"} {
		s.must(s.CreateNode(t.Context(), pool))
	}
	backendtest.Run(t, func(t *testing.T) backendtest.Store {
		of := *s
		of.T = t
		of.empty()
		return &pluginBlocks{fixture: &of}
	})
}

// pluginBlocks is a store of blocks that the real plugin fills and empties.
type pluginBlocks struct {
	*fixture
	given   sync.Map    // addresses that were once allocated
	fumbles atomic.Bool // the next write of a handle must fail
}

// Backend implements backendtest.Store.
func (p *pluginBlocks) Backend() ipam.Backend {
	config := rest.CopyConfig(p.Cluster.Config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return fumbling{next, &p.fumbles} })
	b, err := p.engine().Blocks(config)
	p.must(err)
	return b
}

// Fumble implements backendtest.Fumbler. In etcd, block and handles are one write.
func (p *pluginBlocks) Fumble() { p.fumbles.Store(true) }

// fumbling forbids one write of a handle if fumbles is set.
type fumbling struct {
	next    http.RoundTripper
	fumbles *atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (f fumbling) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/ipamhandles/") || !f.fumbles.CompareAndSwap(true, false) {
		return f.next.RoundTrip(r)
	}
	const no = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
	return &http.Response{
		Status: "403 Forbidden", StatusCode: http.StatusForbidden, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(no)), Request: r,
	}, nil
}

func (p *pluginBlocks) sandbox(pool string, owner ipam.Owner) calico.Sandbox {
	return calico.Sandbox{Namespace: owner.Pod.Namespace, Pod: owner.Pod.Name, Node: pool, ContainerID: owner.Sandbox}
}

// Reserve implements backendtest.Store. What a pod had in another sandbox stays that sandbox's. One
// of the suite's new owners must get an address that was allocated before. It asks for that one,
// because the plugin would give it last.
func (p *pluginBlocks) Reserve(pool string, owner ipam.Owner) (ipam.Allocation, error) {
	sandbox := p.sandbox(pool, owner)
	if strings.HasPrefix(owner.Pod.Name, "new-owner-") {
		sandbox.IP = p.freed(pool)
	}
	ips, err := p.Add(p.Context(), sandbox)
	if err != nil {
		return ipam.Allocation{}, err
	}
	p.given.Store(ips[0], pool)
	return ipam.Allocation{
		Pool: netip.PrefixFrom(ips[0], 27).Masked().String(), Key: strconv.Itoa(int(ips[0].As4()[3] & 31)), IP: ips[0],
		Owner: ipam.Owner{Pod: owner.Pod, Sandbox: owner.Sandbox, Node: pool},
	}, nil
}

// freed returns the first address of a pool that was allocated before and is free now; invalid if
// there is none.
func (p *pluginBlocks) freed(pool string) netip.Addr {
	var first netip.Addr
	list, err := p.List(p.Context(), calico.Block)
	p.must(err)
	for _, o := range list {
		var b struct {
			CIDR        netip.Prefix
			Allocations []*int
		}
		p.must(decode(o.Content, &b))
		for ip, ordinal := b.CIDR.Addr(), 0; ordinal < len(b.Allocations); ip, ordinal = ip.Next(), ordinal+1 {
			was, _ := p.given.Load(ip)
			if was == pool && b.Allocations[ordinal] == nil && (!first.IsValid() || ip.Less(first)) {
				first = ip
			}
		}
	}
	return first
}

// Free implements backendtest.Store.
func (p *pluginBlocks) Free(pool string, owner ipam.Owner) error {
	return p.Del(p.Context(), p.sandbox(pool, owner))
}

// Snapshot implements backendtest.Store.
func (p *pluginBlocks) Snapshot() (map[string]string, error) { return p.snapshot(), nil }
