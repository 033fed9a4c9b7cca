// Package main_test records examples/outage: an outage that real plugins of Calico and Whereabouts
// leave on a real API server.
package main_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

func TestMain(m *testing.M) { kit.Main(m, kit.Options{Sets: []kit.Set{kit.Calico, kit.Attachments}}) }

var update = flag.Bool("update", false, "write examples/outage/dump.json")

// lan is a network of Multus that runs dry.
var lan = plugin.Network{Name: "lan", Range: "172.18.178.192/27", Exclude: []string{"172.18.178.220/30"}}

// An outage is what goes wrong, step by step.
type outage struct {
	*testing.T
	*calico.Datastore
	lan *plugin.Plugin
}

func (o *outage) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// pods starts pods of a Deployment on a node; with net1 also in the LAN.
func (o *outage) pods(namespace, name, node, multus string, n int) (started []string) {
	o.Helper()
	for i := range n {
		s := calico.NewSandbox(namespace, fmt.Sprintf("%s-%c%c%c%c%c", name, "bcdfghjk"[i%8], "lmnpqrst"[i%7], "vwxz2456"[i%6], "789bcdfg"[i%5], "hjklmnpq"[i/8]), node)
		o.pod(s, multus)
		started = append(started, s.Pod)
	}
	return started
}

// pod makes the plugins give addresses to a sandbox, and shows them in the pod.
func (o *outage) pod(s calico.Sandbox, multus string) []netip.Addr {
	o.Helper()
	ips, err := o.Add(o.Context(), s)
	o.must(err)
	var more []cluster.PodOption
	if multus != "" {
		net1, err := o.lan.Add(o.Context(), lan, plugin.Pod{Namespace: s.Namespace, Name: s.Pod}, s.ContainerID, multus)
		o.must(err)
		more = append(more, cluster.Networks(cluster.Attached(s.Namespace+"/lan", multus, net1[0].String())),
			cluster.Annotation("k8s.v1.cni.cncf.io/networks", "lan"))
		ips = append(ips, net1...)
	}
	o.must(o.CreatePod(o.Context(), s, ips[:1], more...))
	return ips
}

// gone deletes pods without their CNI DEL.
func (o *outage) gone(namespace string, pods []string) {
	o.Helper()
	for _, pod := range pods {
		o.must(o.Cluster.DeletePod(o.Context(), namespace, pod))
	}
}

// The recorded outage has what an SRE meets. With -update, it is recorded again.
func TestOutageIsRecorded(t *testing.T) {
	d := calico.KubernetesT(t)
	whereabouts, err := plugin.New(d.Cluster.Dir, d.Cluster.Kubeconfig)
	o := &outage{t, d, whereabouts}
	o.must(err)
	ctx := t.Context()
	for _, namespace := range []string{"shop", "payments", "batch"} {
		o.must(o.Cluster.CreateNamespace(ctx, namespace))
	}
	o.must(o.Ready(ctx, "worker-01"))
	for _, node := range []string{"worker-02", "worker-03", "worker-04"} {
		o.must(o.CreateNode(ctx, node))
	}
	o.must(o.Cluster.CreateNetwork(ctx, "payments", "lan", fmt.Sprintf(
		`{"cniVersion":"1.0.0","name":"lan","type":"macvlan","ipam":{"type":"whereabouts","range":%q,"exclude":[%q]}}`, lan.Range, lan.Exclude[0])))
	_, err = o.Cluster.Kube.CoreV1().Nodes().Patch(ctx, "worker-02", types.MergePatchType, []byte(`{"metadata":{"annotations":{"projectcalico.org/IPv4VXLANTunnelAddr":"10.30.0.70"}}}`), metav1.PatchOptions{})
	o.must(err)

	// Live pods.
	o.pods("shop", "web-6d5f7c9bb5", "worker-01", "", 14)
	o.pods("shop", "cart-7f9c6d4b8", "worker-02", "", 12)
	o.pods("payments", "ledger-5c8b9f7d6", "worker-01", "net1", 7)

	// worker-04 was deleted with its pods, and worker-03 does not answer: its pods were force-deleted.
	lost := o.pods("payments", "gateway-84b6c5d9f", "worker-04", "net1", 8)
	more := o.pods("shop", "search-68d7b9c54", "worker-04", "", 16)
	away := o.pods("shop", "recs-59f8c7b6d", "worker-03", "", 15)
	lanAway := o.pods("payments", "fraud-7b5d8c9f4", "worker-03", "net1", 5)
	o.gone("payments", lost)
	o.gone("shop", more)
	o.gone("shop", away)
	o.gone("payments", lanAway)
	o.must(o.Cluster.Kube.CoreV1().Nodes().Delete(ctx, "worker-04", metav1.DeleteOptions{}))
	o.must(o.Cluster.SetNodeReady(ctx, "worker-03", false))

	// Jobs whose DEL failed on a node that is fine; two of the addresses are reserved by now, which
	// keeps neither.
	var jobs []netip.Addr
	for i := range 6 {
		s := calico.NewSandbox("batch", fmt.Sprintf("report-2948%d-x%dkzq", 1700+i, i+2), "worker-02")
		jobs = append(jobs, o.pod(s, "")...)
		o.gone("batch", []string{s.Pod})
	}
	o.must(o.Apply(ctx, "IPReservation", map[string]string{"name": "migration"},
		map[string]any{"reservedCIDRs": []string{jobs[0].String(), jobs[1].String()}}))

	// Someone removed the entry of a pod that runs, so its address is given out twice.
	double := calico.NewSandbox("payments", "audit-6c7d8b5f9-q2w8r", "worker-01")
	taken := o.pod(double, "net1")[1]
	offset := int(taken.As4()[3]) - 192
	o.must(o.kubectl("-n", cluster.PoolNamespace, "patch", "ippools.whereabouts.cni.cncf.io", "172.18.178.192-27", "--type=json", "-p",
		fmt.Sprintf(`[{"op":"remove","path":"/spec/allocations/%d"}]`, offset)))
	o.must(o.kubectl("-n", cluster.PoolNamespace, "delete", "overlappingrangeipreservations", taken.String()))
	o.pods("payments", "limits-86f9d7c5b", "worker-02", "net1", 1)

	// Sandboxes crash as soon as they have an address, until the LAN is full: the next pod hangs.
	for i := 0; ; i++ {
		s := calico.NewSandbox("payments", fmt.Sprintf("settle-9d8c7b6f5-h%dxm%d", i+2, i+2), "worker-01")
		_, err := o.lan.Add(ctx, lan, plugin.Pod{Namespace: s.Namespace, Name: s.Pod}, s.ContainerID, "net1")
		if err != nil {
			_, err = o.Cluster.CreatePod(ctx, s.Namespace, s.Pod, cluster.OnNode(s.Node), cluster.Phase(corev1.PodPending), cluster.Annotation("k8s.v1.cni.cncf.io/networks", "lan"))
			o.must(err)
			break
		}
	}

	out := o.dump()
	if size := len(out); size > 200_000 {
		t.Errorf("the dump has %d bytes", size)
	}
	for _, secret := range []string{"managedFields", "containers\":[{", "PRIVATE KEY", "token"} {
		if strings.Contains(out, secret) {
			t.Errorf("the dump has %q", secret)
		}
	}
	if !*update {
		return
	}
	root, err := assets.Root()
	o.must(err)
	o.must(os.WriteFile(filepath.Join(root, "..", "examples", "outage", "dump.json"), []byte(out), 0o644))
}

// kubectl runs kubectl.
func (o *outage) kubectl(args ...string) error {
	path, err := assets.Path("kubectl")
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(o.Context(), path, append([]string{"--kubeconfig", o.Cluster.Kubeconfig}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %v: %w: %s", args, err, out)
	}
	return nil
}

// dump returns what ip-reaper dump prints, an hour later: the outage took some seconds, and what is
// younger than minAge would be held.
func (o *outage) dump() string {
	o.Helper()
	program, err := assets.Path("ip-reaper")
	o.must(err)
	out, err := exec.CommandContext(o.Context(), program, "dump", "--kubeconfig="+o.Cluster.Kubeconfig).Output()
	o.must(err)
	var end struct{ Time time.Time }
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	o.must(json.Unmarshal([]byte(lines[len(lines)-1]), &end))
	later, err := end.Time.Add(time.Hour).Truncate(time.Second).MarshalText()
	o.must(err)
	last := &lines[len(lines)-1]
	*last = regexp.MustCompile(`"time":"[^"]*"`).ReplaceAllString(*last, fmt.Sprintf(`"time":%q`, later))
	return strings.Join(lines, "\n") + "\n"
}
