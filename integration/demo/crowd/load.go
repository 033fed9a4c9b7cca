package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/engine"
)

// policy is what the variables name, and what released at night.
const policy = `apiVersion: ip-reaper/v1alpha1
kind: ReapPolicy
gracePeriod: 15m
# All pods of this cluster were created a minute ago, also those that are gone.
minAge: 0s
rules:
- match: {namespaces: [legacy]}
  hold: true
`

// patient remembers what is leaked and releases nothing.
const patient = `apiVersion: ip-reaper/v1alpha1
kind: ReapPolicy
dryRun: false
gracePeriod: 720h
minAge: 0s
`

// A loader writes a crowd.
type loader struct {
	*calico.Datastore
	*crowd
	written  map[int]string  // the contents of the blocks, by index
	handles  map[string]bool // that were written
	reserved map[string]bool // addresses with an overlapping-range reservation
}

// load writes everything, and has runs look at it at the times of the phases.
func (l *loader) load(ctx context.Context) error {
	l.handles, l.reserved = map[string]bool{}, map[string]bool{}
	steps := []func(context.Context) error{l.putNodes, l.putNetworks, l.putPods}
	for phase := range ago {
		steps = append(steps, func(ctx context.Context) error { return l.pass(ctx, phase) })
	}
	began := time.Now()
	for i, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "crowd: step %d of %d is done after %s\n", i+1, len(steps), time.Since(began).Round(time.Second))
	}
	return nil
}

// pass does what happens in a phase.
func (l *loader) pass(ctx context.Context, phase int) error {
	if phase == thirdNight || phase == lastNight {
		if err := l.look(ctx, policy+"dryRun: false\n", ago[phase]); err != nil {
			return err
		}
	}
	if phase == morning {
		var deletes []func() error
		for _, s := range l.doomed {
			deletes = append(deletes, func() error { return l.Cluster.DeletePod(ctx, s.namespace, s.pod) })
		}
		if err := all(deletes); err != nil {
			return err
		}
	}
	if phase == lately {
		if err := l.crash(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(l.putBlocks(ctx, phase), l.putRanges(ctx, phase)); err != nil {
		return err
	}
	return l.look(ctx, patient, ago[phase]-time.Minute)
}

// look runs with the policy so long ago.
func (l *loader) look(ctx context.Context, terms string, ago time.Duration) error {
	at := l.now.Add(-ago)
	e := engine.Engine{
		Kubeconfig: l.Cluster.Kubeconfig, Namespace: state, Now: engine.At(at),
		ID: at.UTC().Format("20060102-150405-") + l.name("run")[4:],
	}
	_, err := e.Run(ctx, terms)
	return err
}

// crash makes the nodes unreachable.
func (l *loader) crash(ctx context.Context) error {
	var writes []func() error
	for n := range l.nodes {
		if l.isDown(n) {
			writes = append(writes, func() error { return l.disconnect(ctx, nodeName(n)) })
		}
	}
	return all(writes)
}

func (l *loader) disconnect(ctx context.Context, name string) error {
	nodes := l.Cluster.Kube.CoreV1().Nodes()
	node, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	since := metav1.NewTime(l.now.Add(-outage))
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown",
		Message: "Kubelet stopped posting node status.", LastTransitionTime: since, LastHeartbeatTime: since,
	}}
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// putNodes writes the namespaces and the nodes, all of them ready.
func (l *loader) putNodes(ctx context.Context) error {
	writes := []func() error{}
	for _, name := range []string{state, "databases", "shop", "search", "checkout", "media", ruled, "monitoring", "batch-etl", "ml-training", "edge"} {
		writes = append(writes, func() error { return l.Cluster.CreateNamespace(ctx, name) })
	}
	for n := range l.nodes {
		writes = append(writes, func() error { return l.CreateNode(ctx, nodeName(n)) })
	}
	return all(writes)
}

// putNetworks writes Calico's pools, the network attachments and the StatefulSets.
func (l *loader) putNetworks(ctx context.Context) error {
	var writes []func() error
	for _, p := range calicoPools {
		spec := fmt.Sprintf(`{"cidr":%q,"blockSize":26,"ipipMode":"Never","vxlanMode":"Always","natOutgoing":true,`+
			`"nodeSelector":"all()","allowedUses":["Workload","Tunnel"]}`, p.cidr)
		writes = append(writes, func() error { return l.Put(ctx, "ippools", p.name, spec) })
	}
	for _, r := range ranges {
		config, err := json.Marshal(map[string]any{
			"cniVersion": "1.0.0", "name": r.Name, "type": "macvlan", "ipam": map[string]any{
				"type": "whereabouts", "range": r.Range, "networkstart": r.RangeStart, "networkend": r.RangeEnd, "exclude": r.Exclude,
			},
		})
		if err != nil {
			return err
		}
		writes = append(writes, func() error { return l.Cluster.CreateNetwork(ctx, r.namespace, r.Name, string(config)) })
	}
	labels := map[string]string{"app": "db"}
	for _, name := range l.sets {
		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.StatefulSetSpec{
				Replicas: new(int32(3)), ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/db:1"}}},
				},
			},
		}
		writes = append(writes, func() error {
			_, err := l.Cluster.Kube.AppsV1().StatefulSets("databases").Create(ctx, set, metav1.CreateOptions{})
			return err
		})
	}
	return all(writes)
}

// putPods writes the pods.
func (l *loader) putPods(ctx context.Context) error {
	var writes []func() error
	create := func(namespace, name string, options ...cluster.PodOption) {
		writes = append(writes, func() error {
			_, err := l.Cluster.CreatePod(ctx, namespace, name, options...)
			return err
		})
	}
	for _, s := range append(l.live[:len(l.live):len(l.live)], l.doomed...) {
		var ips []netip.Addr
		if s.ip.IsValid() {
			ips = append(ips, s.ip)
		}
		options := calico.Sandbox{Node: nodeName(s.node), ContainerID: s.id}.PodOptions(ips...)
		if s.second.IsValid() {
			r := ranges[s.network]
			options = append(options, cluster.Networks(cluster.Attached(r.namespace+"/"+r.Name, "net1", s.second.String())))
		}
		create(s.namespace, s.pod, options...)
	}
	for n := range l.nodes {
		for i := range l.plain {
			create("monitoring", fmt.Sprintf("daemon-%02d-%s", i, nodeName(n)), cluster.OnNode(nodeName(n)),
				cluster.PodIPs(fmt.Sprintf("10.0.0.%d", n+1)), func(p *corev1.Pod) { p.Spec.HostNetwork = true })
		}
	}
	for range l.finished {
		create("batch-etl", l.name("done-29384400"), cluster.Phase(corev1.PodSucceeded), cluster.OnNode(nodeName(0)))
	}
	return all(writes)
}

// podCount is how many pods there are.
func (l *loader) podCount() int { return len(l.live) + l.nodes*l.plain + l.finished }

// allocationCount is how many allocations there are, each reservation counted as one.
func (l *loader) allocationCount() int {
	n := 0
	for _, b := range l.blocks {
		for _, s := range b.owners {
			if s != nil && s.stored(lately) {
				n++
			}
		}
	}
	for i := range ranges {
		for _, s := range l.attachedTo(i) {
			if s.stored(lately) {
				n += 2
			}
		}
	}
	return n
}

// attachedTo are the sandboxes with an address of the range.
func (c *crowd) attachedTo(r int) []*sandbox {
	var of []*sandbox
	for _, some := range [][]*sandbox{c.live, c.absentees, c.leaked} {
		for _, s := range some {
			if s.second.IsValid() && s.network == r {
				of = append(of, s)
			}
		}
	}
	return of
}
