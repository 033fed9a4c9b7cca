package suite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What tells agentPlugin what its agent refuses, and what it refused.
const (
	refusals   = "/run/agent.refuses/" // a folder
	refusedLog = "/run/agent.refused"
)

// edgesBegin chains agentPlugin to the network of workerA, and starts the pods of
// terminating.yaml there, and a static pod on the control plane.
func (c *cluster) edgesBegin() {
	c.Helper()
	c.inside(workerA, "agent-plugin.sh", agentPlugin)
	c.startAgent(workerA)
	c.docker("exec", workerA, "mkdir", "-p", refusals)
	c.docker("exec", workerA, "touch", refusedLog)
	for _, what := range []string{"DEL.stuck", "ADD.looping", "DEL.looping", "DEL.again"} {
		c.docker("exec", workerA, "touch", refusals+what)
	}
	// It asks for an address, which Calico takes from the last try before it gives it to the next.
	c.docker("exec", workerA, "bash", "-c", "echo hold >"+refusals+"ADD.again")
	c.inside(workerA, "chain.sh", agentPlugin)
	c.configured(workerA, agentPlugin, true)
	c.apply("terminating.yaml")
	text, err := os.ReadFile(filepath.Join("testdata", "terminating-static.yaml"))
	c.must(err)
	_, err = c.command(string(text), "docker", "exec", "-i", controlPlane, "tee", "/etc/kubernetes/manifests/edges.yaml")
	c.must(err)
}

// edgesEnd undoes it, wherever the test ended, and leaves the CronJob as it is shipped.
func (c *cluster) edgesEnd() {
	c.Helper()
	c.install("plan")
	c.docker("exec", controlPlane, "rm", "-f", "/etc/kubernetes/manifests/edges.yaml")
	c.docker("exec", workerA, "rm", "-rf", "/etc/cni/net.d/00-chain.conflist", refusals, refusedLog)
	c.configured(workerA, agentPlugin, false)
	c.freeze("CONT")
	_, _ = c.tryKubectl(finish...) // it may be gone
	c.kubectl("delete", "--filename", filepath.Join("testdata", "terminating.yaml"), "--ignore-not-found", "--timeout=2m")
	c.docker("exec", workerA, "rm", "-f", "/opt/cni/bin/"+agentPlugin, "/run/agent.sock")
}

// finish are the arguments by which kubectl takes the finalizer from the pod ended.
var finish = []string{"-n", edges, "patch", "pod", "ended", "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`}

// accept has the agent of workerA refuse this no more.
func (c *cluster) accept(what ...string) {
	c.Helper()
	for _, w := range what {
		c.docker("exec", workerA, "rm", refusals+w)
	}
}

// freeze sends STOP to what ends the processes of the pod frozen, or CONT.
func (c *cluster) freeze(signal string) {
	c.Helper()
	c.inside(workerA, "freeze.sh", signal, edges, "frozen")
}

// dieUnseen deletes pods, and has the sandbox of the first die without a CNI DEL, before the kubelet
// knows. It then starts no other sandbox for any of them.
func (c *cluster) dieUnseen(pod string, others ...string) {
	c.Helper()
	c.docker("exec", workerA, "systemctl", "stop", "kubelet")
	c.kubectl(append([]string{"-n", edges, "delete", "pod", "--wait=false", pod}, others...)...)
	c.inside(workerA, "kill-sandbox.sh", edges, pod)
}

// overdue waits until pods are Terminating for clearly more than a minute beyond their time, on a
// node that has been ready for as long: the kubelet of workerA was stopped.
func (c *cluster) overdue(names ...string) {
	c.Helper()
	const enough = 70 * time.Second
	c.eventually(4*time.Minute, func(ctx context.Context) (string, error) {
		for _, name := range names {
			pod, err := c.kube.CoreV1().Pods(edges).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			if pod.DeletionTimestamp == nil || time.Since(pod.DeletionTimestamp.Time) < enough {
				return fmt.Sprintf("pod %s was to end at %v", name, pod.DeletionTimestamp), nil
			}
		}
		node, err := c.kube.CoreV1().Nodes().Get(ctx, workerA, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if !slices.ContainsFunc(node.Status.Conditions, func(one corev1.NodeCondition) bool {
			return one.Type == corev1.NodeReady && one.Status == corev1.ConditionTrue && time.Since(one.LastTransitionTime.Time) >= enough
		}) {
			return fmt.Sprintf("node %s has not been ready for %v", workerA, enough), nil
		}
		return "", nil
	})
}

// wantTerminal waits until the phases of pods that are Terminating say that they ended, and checks
// that those of the others do not. These others have their addresses on the node.
func (c *cluster) wantTerminal(want map[string]bool) {
	c.Helper()
	phase := func(ctx context.Context, name string) (phase corev1.PodPhase, terminal bool, err error) {
		pod, err := c.kube.CoreV1().Pods(edges).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", false, err
		}
		return pod.Status.Phase, pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed, nil
	}
	c.eventually(2*time.Minute, func(ctx context.Context) (string, error) {
		for name, terminal := range want {
			if got, is, err := phase(ctx, name); err != nil || terminal && !is {
				return fmt.Sprintf("the phase of pod %s is %s, want a terminal one", name, got), err
			}
		}
		return "", nil
	})
	alive := strings.Fields(c.inside(workerA, "netns.sh"))
	for name, terminal := range want {
		got, is, err := phase(c.Context(), name)
		c.must(err)
		if is != terminal {
			c.Errorf("the phase of pod %s is %s, want a terminal one: %t", name, got, terminal)
		}
		held := c.ofPod(name)
		if len(held) == 0 {
			c.Errorf("no store has an address of pod %s", name)
		}
		for _, a := range held {
			if slices.Contains(alive, a.ip.String()) == terminal {
				c.Errorf("%v is alive: %t", a, terminal)
			}
		}
	}
}

// wantAlive checks that the stores hold allocations, that their sandboxes have the addresses,
// and that the pod frozen answers, which the API server has deleted.
func (c *cluster) wantAlive(all []allocation) {
	c.Helper()
	alive := strings.Fields(c.inside(workerA, "netns.sh"))
	still := c.still(all)
	if len(all) == 0 {
		c.Fatal("there is no allocation: the test proves nothing")
	}
	for _, a := range all {
		if !slices.Contains(alive, a.ip.String()) {
			c.Fatalf("no sandbox has %v: the test proves nothing", a)
		}
		if a.pod == edges+"/frozen" {
			c.eventually(30*time.Second, func(context.Context) (string, error) {
				answer, err := c.command("", "docker", "exec", workerB, "curl", "--silent", "--max-time", "5", "http://"+a.ip.String()+":8080/")
				if err == nil && strings.TrimSpace(answer) != "frozen" {
					return fmt.Sprintf("%s answers %q", a.ip, answer), nil
				}
				return "", err
			})
		}
		if !slices.Contains(still, a) {
			c.Errorf("%v was released, and is alive", a)
		}
	}
	if len(still) != len(all) {
		c.FailNow()
	}
}

// wantAdoptable checks that Whereabouts still has these addresses for their pods, which adopt
// them when they are made again.
func (c *cluster) wantAdoptable(all []allocation) {
	c.Helper()
	for _, a := range all {
		if a.store == whereabouts && !slices.ContainsFunc(c.of(edges), func(b allocation) bool { return b.ip == a.ip && b.pod == a.pod }) {
			c.Fatalf("%v was released, and its pod could adopt it", a)
		}
	}
}

// mirror is the name that the static pod has in the API.
func (c *cluster) mirror() string { return "static-" + controlPlane }

// wantMirrorKept deletes the mirror of a static pod twice, which its kubelet makes again
// while the sandbox lives: at once, and then, since it was deleted by force, only when it
// next looks, after 60 to 90 s. At no time the address goes.
func (c *cluster) wantMirrorKept() {
	c.Helper()
	address := c.ofPod(c.mirror())
	for i, force := range [][]string{nil, {"--force", "--grace-period=0"}} {
		began := time.Now()
		c.kubectl(append([]string{"-n", edges, "delete", "pod", c.mirror(), "--wait=false"}, force...)...)
		c.job("ip-reaper", fmt.Sprintf("edges-mirror-%d", i))
		if still := c.still(address); len(still) != 1 {
			c.Fatalf("of the address %v of a static pod that runs there is %v", address, still)
		}
		c.readyPods(3*time.Minute, c.mirror())
		c.Logf("the mirror pod was back after %v", time.Since(began).Round(time.Second))
	}
}
