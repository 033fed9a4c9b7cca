package suite_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeHome is the namespace of the shipped DaemonSet.
const nodeHome = "ip-reaper-node"

// installNode applies the DaemonSet as it is shipped, with components of deploy/kustomize
// and a kustomization of testdata over them, and waits until it runs everywhere.
func (c *cluster) installNode(kustomization string, components ...string) {
	c.Helper()
	dir := c.manifests()
	file := filepath.Join(dir, "node", "kustomization.yaml")
	text, err := os.ReadFile(file)
	c.must(err)
	for _, component := range components {
		text = append(text, "- ../components/"+component+"\n"...)
	}
	c.must(os.WriteFile(file, text, 0o600))
	c.kubectl("apply", "-k", filepath.Join(dir, "e2e", kustomization))
	c.kubectl("-n", nodeHome, "rollout", "status", "daemonset/ip-reaper-node", "--timeout=2m")
}

// onNode runs ip-reaper node in the pod of the DaemonSet on a node: with its account, its
// folders and its socket. It decodes the report into to.
func (c *cluster) onNode(node string, to any, args ...string) {
	c.Helper()
	c.eventually(30*time.Second, func(ctx context.Context) (string, error) {
		pods, err := c.kube.CoreV1().Pods(nodeHome).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			return "", err
		}
		for _, pod := range pods.Items {
			if !ready(pod) {
				continue
			}
			out, err := c.tryKubectl(slices.Concat([]string{"-n", nodeHome, "exec", pod.Name, "--", "/ip-reaper", "node"}, args, []string{"-o", "json"})...)
			if err != nil {
				return "", err // such as that the pod's own run holds the lock
			}
			return "", json.Unmarshal([]byte(out), to)
		}
		return "no pod of the DaemonSet is ready on " + node, nil
	})
}

// A nodeReport is what the tests read of a report.
type nodeReport struct {
	Run struct {
		Node string `json:"node"`
	} `json:"run"`
	Summary struct {
		InUse, Held, Suspected, Planned, Released, Changed, Failed int
	} `json:"summary"`
	Entries []struct {
		IP     netip.Addr `json:"ip"`
		Reason string     `json:"reason"`
	} `json:"entries"`
}

// count counts the addresses that have a reason.
func (r nodeReport) count(reason string) int {
	n := 0
	for _, e := range r.Entries {
		if e.Reason == reason {
			n++
		}
	}
	return n
}

// reap makes a run with the policy of the DaemonSet.
func (c *cluster) reap(node string) nodeReport {
	c.Helper()
	var r nodeReport
	c.onNode(node, &r, "--policy=/etc/ip-reaper/policy.yaml")
	c.Logf("node %s: %+v", r.Run.Node, r.Summary)
	if r.Run.Node != node {
		c.Errorf("the report names node %q, want %q", r.Run.Node, node)
	}
	if r.Summary.Failed > 0 {
		c.Errorf("%d releases failed", r.Summary.Failed)
	}
	return r
}
