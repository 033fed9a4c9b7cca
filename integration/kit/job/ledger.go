package job

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// WriteLedger leaks an address, has a run remember it, and returns the Ledger.
func WriteLedger(t *testing.T, c *cluster.Cluster, namespace string) map[string]string {
	t.Helper()
	leak(t, c, plugin.Pod{Namespace: "shop", Name: "leaked"})
	see(t, c, namespace)
	written := Ledger(t, c, namespace)
	if len(written[memory.LedgerName]) == 0 {
		t.Fatalf("the run wrote no ledger: %v", written)
	}
	return written
}

// Ledger returns what the ConfigMaps of the ledger hold.
func Ledger(t *testing.T, c *cluster.Cluster, namespace string) map[string]string {
	t.Helper()
	list, err := c.Kube.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, cm := range list.Items {
		if strings.HasPrefix(cm.Name, memory.LedgerName) {
			all[cm.Name] = string(cm.BinaryData[memory.LedgerKey])
		}
	}
	return all
}

// leak gives addresses to pods that do not exist. There is one pod that does: a run
// refuses a cluster without pods.
func leak(t *testing.T, c *cluster.Cluster, pods ...plugin.Pod) {
	t.Helper()
	whereabouts, err := plugin.New(c.Dir, c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if _, err := whereabouts.Add(t.Context(), plugin.Network{Range: "10.99.0.0/24"}, pod, calico.NewContainerID(), "net1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.CreatePod(t.Context(), c.Namespace(t), "bystander"); err != nil {
		t.Fatal(err)
	}
}

// see has a run remember the addresses without an owner, and release none.
func see(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	r, err := reap.New()
	if err != nil {
		t.Fatal(err)
	}
	result, err := r.Run(t.Context(), "--dry-run=false", "--grace-period=1h", "--min-age=0s", "--kubeconfig="+c.Kubeconfig,
		"--context="+cluster.ContextName, "--state-namespace="+namespace)
	if err != nil {
		t.Fatal(err)
	}
	if result.ExitCode != reap.ExitDone {
		t.Fatalf("exit code %d\n%s", result.ExitCode, result.Stderr)
	}
}
