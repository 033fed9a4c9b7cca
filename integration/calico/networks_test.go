package calico_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// planOnly is a policy that releases nothing.
const planOnly = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n"

// shown returns what "calicoctl ipam show --show-blocks" counts, by CIDR: all addresses,
// those in use, and the free ones.
func (s *fixture) shown() map[string][3]string {
	s.Helper()
	out, err := s.Calicoctl(s.Context(), "", "ipam", "show", "--show-blocks")
	s.must(err)
	all := make(map[string][3]string)
	for line := range strings.Lines(out) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !strings.Contains(cells[2], "/") {
			continue
		}
		all[strings.TrimSpace(cells[2])] = [3]string{figure(cells[3]), figure(cells[4]), figure(cells[5])}
	}
	return all
}

// figure returns a number from calicoctl, which has five digits, without its percentage.
func figure(cell string) string { return strings.Fields(cell)[0] }

// asShown returns a number as calicoctl prints it.
func asShown(n string) string {
	f, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return n
	}
	return fmt.Sprintf("%.5g", f)
}

// counted returns the same figures from a report.
func counted(r *reap.Report) map[string][3]string {
	all := make(map[string][3]string)
	for _, n := range r.Networks {
		all[n.Range] = [3]string{asShown(n.Capacity.String()), strconv.Itoa(n.Used), asShown(n.Free.String())}
	}
	for _, p := range r.Pools {
		all[p.Range] = [3]string{asShown(p.Capacity.String()), strconv.Itoa(p.Used), asShown(p.Free.String())}
	}
	return all
}

// Networks are as full as calicoctl says, including addresses outside blocks.
func TestNetworksAreAsFullAsCalicoctlSays(t *testing.T) {
	s := newFixture(t, calico.KubernetesT(t))
	s.must(s.ApplyPool(s.Context(), "small", netip.MustParsePrefix("10.33.0.0/29"), 29))
	for n := range 5 {
		s.leak(fmt.Sprint("gone-", n))
	}
	s.live("live")
	report := s.mustReap(reap.ExitDone, planOnly)
	if diff := cmp.Diff(s.shown(), counted(report)); diff != "" {
		s.Errorf("addresses, in use, free (-calicoctl +report):\n%s", diff)
	}
	if len(report.Networks) != 3 || slices.ContainsFunc(report.Pools, func(p reap.Pool) bool {
		return !slices.ContainsFunc(report.Networks, func(n reap.Network) bool { return slices.Contains(n.Pools, p.Name) })
	}) {
		s.Errorf("networks %+v, want three with all of the pools %+v", report.Networks, report.Pools)
	}
}

// With strictAffinity, the plugin refuses a node whose blocks are full when no block is left, although
// addresses are free. A report says so of that node, and of no other, and what a pod that hangs there
// waits for. Without strictAffinity, the plugin gives an address of another node's block.
func TestNodeForWhichNoBlockIsLeft(t *testing.T) {
	each(t, func(s *fixture) {
		_, err := s.Calicoctl(s.Context(), "", "ipam", "configure", "--strictaffinity=true")
		s.must(err)
		s.live("on-node-1")
		for _, name := range []string{"node-2", "node-3", "node-lost", "node-5"} {
			s.must(s.CreateNode(s.Context(), name))
		}
		for _, name := range []string{"node-2", "node-3", "node-lost"} {
			_, err := s.Add(s.Context(), calico.NewSandbox(shop, "on-"+name, name))
			s.must(err)
		}
		s.must(s.Cluster.Kube.CoreV1().Nodes().Delete(s.Context(), "node-lost", metav1.DeleteOptions{}))
		hangs := calico.NewSandbox(shop, "hangs", "node-5")
		_, refused := s.Add(s.Context(), hangs)
		words := plugin.QuotedT(s.T, refused)
		pod, err := s.Cluster.CreatePod(s.Context(), shop, "hangs", cluster.OnNode("node-5"), cluster.Phase("Pending"))
		s.must(err)
		s.must(s.Cluster.FailSandbox(s.Context(), pod, plugin.SandboxFailed(plugin.Pod{Namespace: shop, Name: "hangs"}, calico.DefaultNetwork, refused)))

		blocks := s.four().Blocks
		if blocks == nil || blocks.Missing != 1 || blocks.Unclaimed != "0" || blocks.MayBorrow == nil || *blocks.MayBorrow || blocks.Without == nil || *blocks.Without != 1 {
			s.Errorf("blocks %+v, want one of a lost node, none that is left, and one node without room", blocks)
		}
		s.explained("waits for an address of four (no block is left for its node node-5, which has no block: all 4 blocks are taken, 1 of nodes that do not exist (node-lost), and no node may borrow", words)

		_, err = s.Calicoctl(s.Context(), "", "ipam", "configure", "--strictaffinity=false")
		s.must(err)
		if blocks := s.four().Blocks; blocks.Without == nil || *blocks.Without != 0 {
			s.Errorf("blocks %+v, where nodes may borrow", blocks)
		}
		s.explained("waits for an address of four (252 of 256 free", words)
		_, err = s.Add(s.Context(), hangs)
		s.must(err)
	})
}

// The plugin's own words of a pool that is full, of one that does not exist, and of an address that is taken are what
// explain quotes. Of the first, it knows which pool that is.
func TestPluginNamesThePoolThatIsFull(t *testing.T) {
	each(t, func(s *fixture) {
		s.must(s.ApplyPool(s.Context(), "small", netip.MustParsePrefix("10.33.0.0/29"), 29))
		small := func(pod string) (calico.Sandbox, error) {
			sandbox := calico.NewSandbox(shop, pod, node)
			sandbox.Pools = []string{"10.33.0.0/29"}
			_, err := s.Add(s.Context(), sandbox)
			return sandbox, err
		}
		for i := range 8 {
			_, err := small(fmt.Sprint("gone-", i))
			s.must(err)
		}
		_, full := small("hangs")
		words := plugin.QuotedT(s.T, full)
		pod, err := s.Cluster.CreatePod(s.Context(), shop, "hangs", cluster.OnNode(node), cluster.Phase("Pending"),
			cluster.Annotation("cni.projectcalico.org/ipv4pools", `["small"]`))
		s.must(err)
		s.must(s.Cluster.FailSandbox(s.Context(), pod, plugin.SandboxFailed(plugin.Pod{Namespace: shop, Name: "hangs"}, calico.DefaultNetwork, full)))
		s.explained("waits for an address of small (full, 0 leaked, 8 too young, an event names it)", words)

		missing := calico.NewSandbox(shop, "missing", node)
		missing.Pools = []string{"10.99.0.0/24"}
		_, err = s.Add(s.Context(), missing)
		if words := plugin.QuotedT(s.T, err); !strings.Contains(words, "10.99.0.0/24") {
			s.Errorf("of a pool that does not exist, the plugin says %q", words)
		}

		again := calico.NewSandbox(shop, "again", node)
		again.IP = netip.MustParseAddr("10.33.0.1")
		_, err = s.Add(s.Context(), again)
		if words := plugin.QuotedT(s.T, err); !strings.Contains(words, "10.33.0.1") {
			s.Errorf("of an address that is taken, the plugin says %q", words)
		}
	})
}

// four returns the IPv4 pool of the fixture in a report.
func (s *fixture) four() reap.Network {
	s.Helper()
	networks := s.mustReap(reap.ExitDone, planOnly).Networks
	i := slices.IndexFunc(networks, func(n reap.Network) bool { return n.Name == "four" })
	if i < 0 {
		s.Fatalf("networks %+v", networks)
	}
	return networks[i]
}

// explained fails the test unless explain says this of the pod that hangs, and quotes these words of an event, if
// there are any.
func (s *fixture) explained(want, words string) {
	s.Helper()
	r, err := reap.New()
	s.must(err)
	policy := planOnly
	if s.Etcd != nil {
		policy += reap.InEtcd
	}
	r.Env = s.env
	file := filepath.Join(s.TempDir(), "policy.yaml")
	s.must(os.WriteFile(file, []byte(policy), 0o600))
	result, err := r.Run(s.Context(), "explain", shop+"/hangs", "--kubeconfig="+s.kubeconfig, "--context="+cluster.ContextName, "--state-namespace="+cluster.PoolNamespace, "--policy="+file)
	s.must(err)
	line, _, _ := strings.Cut(result.Stdout[max(0, strings.Index(result.Stdout, "pod "+shop)):], "\n")
	quoted := words == "" || strings.Contains(result.Stdout, "FailedCreatePodSandBox: "+words+"\n")
	if result.ExitCode != reap.ExitDone || !strings.Contains(line, want) || !quoted {
		s.Errorf("exit code %d, %q does not say %q and then %q; stdout:\n%s\nstderr:\n%s", result.ExitCode, line, want, words, result.Stdout, result.Stderr)
	}
}
