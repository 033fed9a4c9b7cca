package run_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"testing"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

const node = "worker-1"

// holdings are what stores hold: who has an address of each kind.
type holdings map[string]string

// A twoStores is where pods come and go, each with an address of Calico and one of
// Whereabouts, and what those who stay ought to find in the stores.
type twoStores struct {
	*fixture
	calico *calico.Datastore

	mu   sync.Mutex
	want holdings
}

func newTwoStores(t *testing.T) *twoStores {
	t.Helper()
	c := &twoStores{fixture: newFixture(t), want: holdings{}}
	var err error
	c.calico, err = calico.OnKubernetes(t.Context(), c.Cluster)
	c.must(err)
	c.must(c.calico.CreateNode(t.Context(), node))
	c.must(c.calico.ApplyPool(t.Context(), "four", netip.MustParsePrefix("10.30.0.0/24"), 26))
	return c
}

// A sandbox is a sandbox of a pod with its two addresses.
type sandbox struct {
	sandbox calico.Sandbox
	net1    netip.Addr
	eth0    netip.Addr
}

// add has both plugins give an address to a new sandbox of a pod.
func (c *twoStores) add(ctx context.Context, pod string) (sandbox, error) {
	d := sandbox{sandbox: calico.NewSandbox(shop, pod, node)}
	ips, err := c.calico.Add(ctx, d.sandbox)
	if err != nil {
		return d, err
	}
	d.eth0 = ips[0]
	if ips, err = c.plugin.Add(ctx, wide, plugin.Pod{Namespace: shop, Name: pod}, d.sandbox.ContainerID, "net1"); err != nil {
		return d, err
	}
	d.net1 = ips[0]
	return d, nil
}

// del runs both DELs.
func (c *twoStores) del(ctx context.Context, d sandbox) error {
	if err := c.plugin.Del(ctx, wide, plugin.Pod{Namespace: shop, Name: d.sandbox.Pod}, d.sandbox.ContainerID, "net1"); err != nil {
		return err
	}
	return c.calico.Del(ctx, d.sandbox)
}

// bringUp has a pod live: it exists before its ADDs, and shows what they gave. What it
// has then has to stay.
func (c *twoStores) bringUp(ctx context.Context, pod string) (sandbox, error) {
	if _, err := c.CreatePod(ctx, shop, pod, cluster.Phase("Pending")); err != nil {
		return sandbox{}, err
	}
	d, err := c.add(ctx, pod)
	if err != nil {
		return d, err
	}
	options := append(d.sandbox.PodOptions(d.eth0), cluster.Phase("Running"),
		cluster.Networks(cluster.Attached("shop/net", "net1", d.net1.String())))
	if err := c.UpdatePod(ctx, shop, pod, options...); err != nil {
		return d, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, owner := range d.holdings() {
		if other := c.want[key]; other != "" {
			return d, fmt.Errorf("%s was given to %s, and %s has it", key, owner, other)
		}
		c.want[key] = owner
	}
	return d, nil
}

// holdings are what the stores have to hold for it.
func (d sandbox) holdings() holdings {
	ref := shop + "/" + d.sandbox.Pod
	return holdings{
		"entry " + d.net1.String():       ref + " " + d.sandbox.ContainerID,
		"reservation " + d.net1.String(): ref,
		"block " + d.eth0.String():       d.sandbox.Handle(),
	}
}

// expectNone forgets what it has to find, since it is going.
func (c *twoStores) expectNone(d sandbox) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range d.holdings() {
		delete(c.want, key)
	}
}

// entries are the holdings of a pool of wide.
func entries(pool *v1alpha1.IPPool) holdings {
	all := holdings{}
	for key, a := range pool.Spec.Allocations {
		all["entry 10.0.0."+key] = a.PodRef + " " + a.ContainerID
	}
	return all
}

// holdings reads all stores. What calicoctl finds wrong with handles fails the test.
func (c *twoStores) holdings() holdings {
	c.Helper()
	all := holdings{}
	client := c.Whereabouts.WhereaboutsV1alpha1()
	pools, err := client.IPPools(cluster.PoolNamespace).List(c.Context(), metav1.ListOptions{})
	c.must(err)
	for _, pool := range pools.Items {
		maps.Copy(all, entries(&pool))
	}
	allocations, err := client.OverlappingRangeIPReservations(cluster.PoolNamespace).List(c.Context(), metav1.ListOptions{})
	c.must(err)
	for _, r := range allocations.Items {
		all["reservation "+r.Name] = r.Spec.PodRef
	}
	report, err := c.calico.Check(c.Context())
	c.must(err)
	for ip, allocations := range report.Allocations {
		for _, a := range allocations {
			all["block "+ip.String()] = a.Handle
		}
	}
	if len(report.NoHandle)+len(report.LeakedHandles)+len(report.MissingHandles) > 0 {
		c.Errorf("calicoctl finds problems:\n%s", report.Text)
	}
	return all
}

// history watches the pools from now on. What it returns ends that, when all that was
// written until then has been seen, and says how often each holding came to its end.
func (c *twoStores) history() (ended func() map[string]int) {
	c.Helper()
	pools := c.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace)
	list, err := pools.List(c.Context(), metav1.ListOptions{})
	c.must(err)
	w, err := pools.Watch(c.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	c.must(err)
	c.Cleanup(w.Stop)
	before := holdings{}
	for _, pool := range list.Items {
		maps.Copy(before, entries(&pool))
	}
	return func() map[string]int {
		last, err := pools.List(c.Context(), metav1.ListOptions{})
		c.must(err)
		ends := map[string]int{}
		for seen := ""; len(last.Items) == 1 && seen != last.Items[0].ResourceVersion; {
			event, open := <-w.ResultChan()
			pool, ok := event.Object.(*v1alpha1.IPPool)
			if !open || !ok || event.Type == watch.Error {
				c.Fatalf("the watch of pools ended: %v", event)
			}
			seen = pool.ResourceVersion
			after := entries(pool)
			for key, owner := range before {
				if after[key] != owner {
					ends[fmt.Sprint(key, " ", owner)]++
				}
			}
			before = after
		}
		return ends
	}
}
