package ship_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

const namespace = "nstest"

// network is that of the outage in the pages: five addresses are to be had.
var network = plugin.Network{
	Name: "test", Range: "172.18.178.192/27", RangeStart: "172.18.178.196", RangeEnd: "172.18.178.200",
}

// attachment is how an operator writes that network down.
const attachment = `{"cniVersion": "0.3.1", "type": "ipvlan", "master": "net2", "mode": "l2", "ipam": {
	"type": "whereabouts", "range": "172.18.178.192/27", "range_start": "172.18.178.196", "range_end": "172.18.178.200"}}`

// outage brings about what the pages tell of: five pods have the five addresses,
// and two of them were on worker-2, which does not answer any more. They are gone
// from the API server, and a new one hangs. On worker-2 there was a pod with an
// address of Calico's, too.
func (o *operator) outage() {
	o.Helper()
	ctx, c := o.Context(), o.cluster
	must(o, c.CreateNamespace(ctx, namespace))
	must(o, c.CreateNetwork(ctx, namespace, "test", attachment))
	must(o, o.calico.ApplyPool(ctx, "default-ipv4-ippool", netip.MustParsePrefix("10.30.0.0/24"), 29))
	for _, node := range []string{"worker-1", "worker-2"} {
		must(o, o.calico.CreateNode(ctx, node))
	}
	whereabouts, err := plugin.New(c.Dir, c.Kubeconfig)
	must(o, err)
	for _, pod := range []string{"4kzqt", "9hwxm", "c7lpd", "n2vbf", "x8trj"} {
		o.attach(whereabouts, "app-6d5f7c9b8-"+pod)
	}
	for _, node := range []string{"worker-1", "worker-2"} {
		sandbox := calico.NewSandbox("default", "web-on-"+node, node)
		ips, err := o.calico.Add(ctx, sandbox)
		must(o, err)
		must(o, o.calico.CreatePod(ctx, sandbox, ips))
	}

	must(o, c.SetNodeReady(ctx, "worker-2", false))
	for _, pod := range []string{"app-6d5f7c9b8-n2vbf", "app-6d5f7c9b8-x8trj"} {
		must(o, c.DeletePod(ctx, namespace, pod))
	}
	must(o, c.DeletePod(ctx, "default", "web-on-worker-2"))
	o.hang(whereabouts, "app-6d5f7c9b8-5gmzk")
}

// attach creates a pod that runs with an address of the network.
func (o *operator) attach(p *plugin.Plugin, pod string) {
	o.Helper()
	ips, err := p.Add(o.Context(), network, plugin.Pod{Namespace: namespace, Name: pod}, calico.NewContainerID(), "net1")
	must(o, err)
	_, err = o.cluster.CreatePod(o.Context(), namespace, pod,
		cluster.Networks(cluster.Attached(namespace+"/test", "net1", ips[0].String())))
	must(o, err)
}

// hang creates a pod that gets no address, and the event in which the kubelet says
// what the plugin answered.
func (o *operator) hang(p *plugin.Plugin, pod string) {
	o.Helper()
	created, err := o.cluster.CreatePod(o.Context(), namespace, pod, cluster.Phase(corev1.PodPending), cluster.Annotation("k8s.v1.cni.cncf.io/networks", "test"))
	must(o, err)
	_, err = p.Add(o.Context(), network, plugin.Pod{Namespace: namespace, Name: pod}, calico.NewContainerID(), "net1")
	var refused *plugin.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Msg, "Could not allocate IP in range") {
		o.Fatalf("want that no address is left: %v", err)
	}
	must(o, o.cluster.FailSandbox(o.Context(), created, plugin.SandboxFailed(plugin.Pod{Namespace: namespace, Name: pod}, "test", refused)))
}

// A search for what Calico's plugin says of an IPPool without a free address finds the runbook. What
// Whereabouts says is in its first step.
func TestRunbookHasTheErrorOfCalico(t *testing.T) {
	d := calico.KubernetesT(t)
	must(t, d.ApplyPool(t.Context(), "default-ipv4-ippool", netip.MustParsePrefix("10.30.0.0/29"), 29))
	must(t, d.CreateNode(t.Context(), "worker-1"))
	var full error
	for i := 0; full == nil && i <= 8; i++ {
		_, full = d.Add(t.Context(), calico.NewSandbox("default", fmt.Sprint("web-", i), "worker-1"))
	}
	if full == nil {
		t.Fatal("nine pods have an address of eight")
	}
	if !slices.ContainsFunc(rows(t, "docs/outage.md", "text"), func(row []string) bool {
		return shown(strings.Trim(row[0], "`")).MatchString(full.Error())
	}) {
		t.Errorf("docs/outage.md has no row for %v", full)
	}
}
