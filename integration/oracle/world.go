package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/snapshot"
	kit "github.com/ip-reaper/ip-reaper/integration/kit/world"
)

// shop is the namespace of the pods.
const shop = "shop"

// policyHead is what all policies have in common.
const policyHead = `apiVersion: ip-reaper/v1alpha1
kind: ReapPolicy
dryRun: false
minAge: 0s
backends:
` + kit.ReservedIPs

// policies are what may follow.
var policies = []string{
	"", "pods: {finished: release}\n", "protection: {statefulSets: ignore}\n",
	"pods: {unnamed: release}\nnodes: {unreachable: release}\n", "limits: {maxReleases: 3, maxFraction: 1}\n", "rules:\n- {match: {pods: [\"p-1*\"]}, gracePeriod: 24h}\n",
}

// A world is what a seed makes: a policy, and what happens before each of three runs. The last
// one finds all grace periods over.
type world struct {
	seed   uint64
	policy string
	grace  time.Duration
	steps  [3][]step

	*rand.Rand
	entries map[string]map[string]any // of each IPPool, by key
	blocks  []map[string]any          // attributes of the block, by ordinal
}

// A step is one change of the cluster.
type step func(context.Context, *cluster.Cluster) error

func newWorld(seed uint64) *world {
	w := &world{
		seed: seed, grace: time.Second, Rand: rand.New(rand.NewPCG(seed, 0)),
		entries: map[string]map[string]any{"10.1.0.0-24": {}, "10.2.0.0-24": {}},
	}
	w.policy = policyHead + policies[w.IntN(len(policies))]
	if !strings.Contains(w.policy, "limits:") {
		w.policy += "limits: {maxFraction: 1}\n"
	}
	if w.chance(3) {
		w.grace = 0
	}
	w.policy += fmt.Sprintf("gracePeriod: %v\n", w.grace)
	w.first(func(ctx context.Context, c *cluster.Cluster) error { return c.CreateNamespace(ctx, shop) })
	for n := range 3 {
		w.node(fmt.Sprint("node-", n))
	}
	w.set()
	for n := range 8 + w.IntN(16) {
		w.pod(fmt.Sprint("p-", n))
	}
	for n := range 3 {
		w.pod(fmt.Sprint("db-", n))
	}
	if w.chance(2) {
		w.odd()
	}
	w.write()
	return w
}

// chance is true once in n times.
func (w *world) chance(n int) bool { return w.IntN(n) == 0 }

// node makes a node, which may be away later.
func (w *world) node(name string) {
	w.first(func(ctx context.Context, c *cluster.Cluster) error { return c.CreateNode(ctx, name, true) })
	switch w.IntN(6) {
	case 0:
		w.later(func(ctx context.Context, c *cluster.Cluster) error { return c.SetNodeReady(ctx, name, false) })
	case 1:
		w.later(func(ctx context.Context, c *cluster.Cluster) error {
			return c.Kube.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
		})
	}
}

// set makes the StatefulSet db, which wants up to three pods.
func (w *world) set() {
	labels := map[string]any{"app": "db"}
	w.put(snapshot.Resource{API: "/apis/apps/v1", Name: "statefulsets", Namespaced: true}, shop, "db", "StatefulSet",
		map[string]any{"spec": map[string]any{
			"replicas": w.IntN(4), "serviceName": "db", "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
				"containers": []map[string]string{{"name": "main", "image": "registry.invalid/main:1"}},
			}},
		}})
}

// pod makes a pod with an address of each store, or what such a pod has left.
func (w *world) pod(name string) {
	node, sandbox := fmt.Sprint("node-", w.IntN(3)), w.sandbox()
	var lan, wan, primary string
	for range 1 + w.IntN(2) { // an older sandbox may have left something
		if !w.chance(5) {
			lan = w.entry("10.1.0.0-24", "10.1.0.", name, sandbox, "net1")
			w.reservation(lan, name)
		}
		if w.chance(2) {
			wan = w.entry("10.2.0.0-24", "10.2.0.", name, sandbox, "net2")
		}
		if sandbox = w.sandbox(); !w.chance(4) {
			primary = w.address(name, node, sandbox)
		}
	}
	options := []cluster.PodOption{cluster.OnNode(node)}
	if primary != "" {
		options = append(options, cluster.PodIPs(primary), cluster.Annotation(calico.ContainerIDAnnotation, sandbox),
			cluster.Annotation(calico.PodIPAnnotation, primary+"/32"))
	} else {
		options = append(options, cluster.PodIPs(fmt.Sprint("10.244.0.", 1+w.IntN(250))))
	}
	var attached []cluster.NetworkStatus
	if lan != "" {
		attached = append(attached, cluster.Attached(shop+"/lan", "net1", lan))
	}
	if wan != "" {
		attached = append(attached, cluster.Attached(shop+"/wan", "net2", wan))
	}
	switch w.IntN(8) {
	case 0: // it is gone from the beginning
		return
	case 1:
		options = append(options, cluster.Phase(corev1.PodPending), cluster.PodIPs())
	case 2:
		options = append(options, cluster.Phase(corev1.PodSucceeded), cluster.Networks(attached...))
	case 3:
		options = append(options, cluster.Annotation(cluster.NetworkStatusAnnotation, "{"))
	case 4: // it shows no network-status
	default:
		options = append(options, cluster.Networks(attached...))
	}
	create := func(ctx context.Context, c *cluster.Cluster) error {
		_, err := c.CreatePod(ctx, shop, name, options...)
		return err
	}
	w.first(create)
	switch w.IntN(6) {
	case 0, 1, 2:
		w.later(func(ctx context.Context, c *cluster.Cluster) error { return c.DeletePod(ctx, shop, name) })
		if w.chance(4) {
			w.later(create)
		}
	case 3:
		w.later(func(ctx context.Context, c *cluster.Cluster) error {
			return c.UpdatePod(ctx, shop, name, cluster.Phase(corev1.PodFailed))
		})
	}
}

func (w *world) sandbox() string { return fmt.Sprintf("%032x%032x", w.Uint64(), w.Uint64()) }

// entry adds an entry to an IPPool, and returns its address.
func (w *world) entry(pool, prefix, pod, sandbox, iface string) string {
	key := fmt.Sprint(1 + len(w.entries[pool]))
	entry := map[string]any{"id": sandbox, "podref": shop + "/" + pod, "ifname": iface}
	if w.chance(12) {
		delete(entry, "ifname")
	}
	w.entries[pool][key] = entry
	return prefix + key
}

// reservation makes the reservation of an address, and sometimes none.
func (w *world) reservation(ip, pod string) {
	if w.chance(10) {
		return
	}
	w.put(snapshot.Reservations, cluster.PoolNamespace, ip, "OverlappingRangeIPReservation", map[string]any{
		"spec": map[string]any{"podref": shop + "/" + pod, "ifname": "net1"},
	})
}

// address adds an address to the block, and its handle.
func (w *world) address(pod, node, sandbox string) string {
	ordinal, handle := len(w.blocks), calico.DefaultNetwork+"."+sandbox
	w.blocks = append(w.blocks, map[string]any{"handle_id": handle, "secondary": map[string]string{
		"namespace": shop, "pod": pod, "node": node, "timestamp": "2026-01-02 03:04:05.678 +0000 UTC",
	}})
	w.handle(handle)
	return fmt.Sprint("10.30.0.", ordinal)
}

func (w *world) handle(id string) {
	w.put(snapshot.Handles, "", id, "IPAMHandle", map[string]any{
		"spec": map[string]any{"handleID": id, "block": map[string]int{"10.30.0.0/25": 1}, "deleted": false},
	})
}

// odd adds what no plugin writes, and what has lost its address.
func (w *world) odd() {
	lan := w.entries["10.1.0.0-24"]
	lan["200"] = map[string]any{"id": "s", "podref": "nobody"}
	lan["x"] = map[string]any{"id": "s", "podref": shop + "/gone", "ifname": "net1"}
	w.reservation("10.1.0.201", "gone")
	w.handle(calico.DefaultNetwork + "." + w.sandbox())
	w.put(snapshot.ReservedIPs, shop, "kept", "ReservedIP", map[string]any{
		"spec":   map[string]any{"pod": shop + "/gone", "ttl": []string{"24h", "9999h"}[w.IntN(2)]},
		"status": map[string]any{"ips": []string{"10.1.0.201"}, "deletedAt": "2026-11-01T00:00:00Z"},
	})
	w.first(func(ctx context.Context, c *cluster.Cluster) error {
		return c.CreateNetwork(ctx, shop, "lan", `{"cniVersion":"1.0.0","name":"lan","type":"macvlan",`+
			`"ipam":{"type":"whereabouts","range":"10.1.0.0/24","exclude":["10.1.0.2/32"]}}`)
	})
}

// write makes the pools and the block of what was added.
func (w *world) write() {
	for name, entries := range w.entries {
		w.put(snapshot.Pools, cluster.PoolNamespace, name, "IPPool", map[string]any{
			"spec": map[string]any{"range": strings.Replace(name, "-", "/", 1), "allocations": entries},
		})
	}
	allocations, unallocated, sequences := make([]*int, 128), []int{}, map[string]int{}
	for ordinal := range allocations {
		if ordinal < len(w.blocks) {
			allocations[ordinal], sequences[fmt.Sprint(ordinal)] = &ordinal, ordinal
		} else {
			unallocated = append(unallocated, ordinal)
		}
	}
	w.put(snapshot.Blocks, "", "10-30-0-0-25", "IPAMBlock", map[string]any{"spec": map[string]any{
		"cidr": "10.30.0.0/25", "affinity": "host:node-0", "strictAffinity": false, "deleted": false,
		"allocations": allocations, "unallocated": unallocated, "attributes": w.blocks,
		"sequenceNumber": 1<<60 + 1, "sequenceNumberForAllocation": sequences,
	}})
}

// put makes an object of a store.
func (w *world) put(r snapshot.Resource, namespace, name, kind string, fields map[string]any) {
	fields["apiVersion"], fields["kind"] = strings.TrimPrefix(r.API, "/apis/"), kind
	fields["metadata"] = map[string]string{"name": name}
	w.first(func(ctx context.Context, c *cluster.Cluster) error {
		raw, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		return snapshot.Object{Resource: r, Namespace: namespace, Name: name, Raw: raw}.Create(ctx, c)
	})
}

// first and later say what happens before the first run, and before the second.
func (w *world) first(s step) { w.steps[0] = append(w.steps[0], s) }

func (w *world) later(s step) { w.steps[1] = append(w.steps[1], s) }
