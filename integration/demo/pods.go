package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

const (
	namespace      = "nstest"
	stateNamespace = "ip-reaper" // where a run keeps its state by default
	iface          = "net1"
	pool           = "172.18.178.192-27"
)

// network is the outage's: a /27 with five available addresses.
var network = plugin.Network{
	Name:       "test",
	Range:      "172.18.178.192/27",
	RangeStart: "172.18.178.196",
	RangeEnd:   "172.18.178.200",
}

// A pod is one pod of the deployment.
type pod struct {
	name, node string
	ip         netip.Addr // of the interface in the network
	sandboxes  int
}

// A deployment has pods: survivors run on the node that stays up, victims on the other one, and
// replacements take the victims' place. One more is next.
type deployment struct {
	survivors, victims, replacements []*pod
	next                             *pod
}

func newPods() deployment {
	return deployment{
		survivors: []*pod{
			{name: "app-6d5f7c9b8-4kzqt", node: "worker-1"},
			{name: "app-6d5f7c9b8-9hwxm", node: "worker-1"},
			{name: "app-6d5f7c9b8-c7lpd", node: "worker-1"},
		},
		victims: []*pod{
			{name: "app-6d5f7c9b8-n2vbf", node: "worker-2"},
			{name: "app-6d5f7c9b8-x8trj", node: "worker-2"},
		},
		replacements: []*pod{
			{name: "app-6d5f7c9b8-5gmzk", node: "worker-1"},
			{name: "app-6d5f7c9b8-q6sdw", node: "worker-1"},
		},
		next: &pod{name: "app-6d5f7c9b8-w2rks", node: "worker-2"},
	}
}

// create creates the pod: bound to its node and waiting for its sandbox.
func (d *demo) create(ctx context.Context, a *pod) error {
	_, err := d.cluster.CreatePod(ctx, namespace, a.name,
		cluster.OnNode(a.node),
		cluster.Phase(corev1.PodPending),
		cluster.Labels(map[string]string{"app": "app"}))
	return err
}

// add does what a kubelet does for a new sandbox: it calls the CNI plugin. If that gives an
// address, the pod gets Multus's annotation and runs.
func (d *demo) add(ctx context.Context, a *pod) error {
	a.sandboxes++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", a.name, a.sandboxes))
	sandbox := hex.EncodeToString(sum[:])
	d.command(fmt.Sprintf("CNI_COMMAND=ADD CNI_ARGS=K8S_POD_NAME=%s whereabouts", a.name))
	ips, err := d.plugin.Add(ctx, network, plugin.Pod{Namespace: namespace, Name: a.name}, sandbox, iface)
	var refused *plugin.Error
	if errors.As(err, &refused) {
		d.show(refused.Msg + "\n")
	}
	if err != nil {
		return err
	}
	if len(ips) != 1 {
		return fmt.Errorf("ADD for %s gives %v, want one address", a.name, ips)
	}
	a.ip = ips[0]
	d.show(a.ip.String() + "\n")
	return d.cluster.UpdatePod(ctx, namespace, a.name,
		cluster.Phase(corev1.PodRunning),
		cluster.Networks(cluster.Attached(namespace+"/"+network.Name, iface, a.ip.String())))
}
