package suite_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// hostLocal is the namespace of the pods of host-local.yaml.
const hostLocal = "host-local"

// removedPlugin is a plugin that a configuration still names and the node has no more, such
// as one of a service mesh that was uninstalled.
const removedPlugin = "istio-cni"

// agentPlugin is the plugin of agent-plugin.sh.
const agentPlugin = "ask-agent"

// The networks of the worker, one after the other. A range has 29 addresses for pods: the
// plugin gives away neither the first, which is the gateway's, nor the last.
var (
	// As kindnet has it: the leases are in memory, and a reboot removes them.
	inMemory = hostNetwork{name: "kindnet", dataDir: "/run/cni-ipam-state", subnet: "10.244.1.192/27"}
	// As flannel has it: the leases are on the disk.
	onDisk = hostNetwork{name: "cbr0", subnet: "10.244.1.224/27"}
)

// rangeSize is how many addresses a range has for pods.
const rangeSize = 29

// The addresses that a node keeps itself, with the real containerd: it leaks them in the
// ways that are known, and the shipped DaemonSet brings them back.
func TestNodeThatLeaksItsAddresses(t *testing.T) {
	c := connect(t)
	c.kubectl("drain", workerA, "--ignore-daemonsets", "--force", "--timeout=2m")
	defer c.giveBack(workerA)
	c.connectPods(workerA, inMemory, "")
	c.apply("host-local.yaml")
	c.started("running", 2*time.Minute)
	running := c.podsOf("running")
	theirs := c.leasesOf(workerA, inMemory, running)
	unharmed := func(c *cluster) {
		c.Helper()
		c.wantAnswers(running)
		if lost := without(theirs, c.leases(workerA, inMemory)); len(lost) > 0 {
			c.Errorf("running pods lost their leases: %v", lost)
		}
	}
	unharmed(c)

	c.step("a plugin that is missing costs an address a try, until the range is full", func(c *cluster) {
		c.leakUntilFull(workerA, inMemory)
		unharmed(c)
	})
	c.connectPods(workerA, inMemory, "")
	c.step("the DaemonSet releases nothing that is young", func(c *cluster) {
		before := c.leases(workerA, inMemory)
		c.installNode("node-release", "node-kindnet", "node-release")
		r := c.reap(workerA)
		if want := rangeSize - len(running); r.Summary.Released > 0 || r.count("TooYoung") != want {
			c.Errorf("of the young leases, %d were released, and %d are held for that, want %d", r.Summary.Released, r.count("TooYoung"), want)
		}
		if lost := without(before, c.leases(workerA, inMemory)); len(lost) > 0 {
			c.Errorf("young leases are gone: %v", lost)
		}
	})
	c.step("the DaemonSet releases all that leaked, and the pods that hung start", func(c *cluster) {
		c.freed(workerA, inMemory, c.aged(workerA, inMemory))
		c.started("hanging", 2*time.Minute)
		unharmed(c)
	})
	c.empty(workerA, inMemory)
	c.step("a node that was rebooted fills its range, and the DaemonSet is back and releases it", func(c *cluster) {
		c.installNode("node-release", "node-release") // no folder of kindnet's is there after a reboot
		leaked := c.leakByReboot(workerA, onDisk)
		c.startAgent(workerA)
		c.freed(workerA, onDisk, leaked)
		c.back(workerA, onDisk)
		c.wantAnswers(c.podsOf("running"))
	})
}

// giveBack leaves the worker to the rest of the suite, as it was.
func (c *cluster) giveBack(node string) {
	c.Helper()
	c.startAgent(node) // or no pod that has an address ends
	c.kubectl("delete", "namespace", hostLocal, nodeHome, "--ignore-not-found", "--timeout=2m")
	c.inside(node, "host-local-end.sh", inMemory.folder(), onDisk.folder(), "/var/lib/ip-reaper", "/opt/cni/bin/"+agentPlugin, "/run/agent.sock")
	c.configured(node, inMemory.name, false)
	c.configured(node, onDisk.name, false)
	c.kubectl("uncordon", node)
}

// freed waits until none of the leases is there. The plugin may have given the addresses
// away again.
func (c *cluster) freed(node string, n hostNetwork, leases []lease) {
	c.Helper()
	c.eventually(2*time.Minute, func(context.Context) (string, error) {
		now := c.leases(node, n)
		still := slices.DeleteFunc(slices.Clone(leases), func(l lease) bool { return !slices.ContainsFunc(now, l.same) })
		if len(still) > 0 {
			return fmt.Sprintf("of %d leases, %d are still there: %v", len(leases), len(still), still), nil
		}
		return "", nil
	})
}

// aged makes the leases that leaked older than the minimal age, and returns them. No ADD may
// succeed meanwhile: its lease, too, has no sandbox at first.
func (c *cluster) aged(node string, n hostNetwork) []lease {
	c.Helper()
	leaked := c.leaked(node, n)
	c.age(node, n, leaked)
	return slices.DeleteFunc(c.leases(node, n), func(l lease) bool { return !slices.ContainsFunc(leaked, l.same) })
}

// empty ends all pods, and waits until their leases are gone.
func (c *cluster) empty(node string, n hostNetwork) {
	c.Helper()
	c.scale("running", 0)
	c.scale("hanging", 0)
	c.eventually(time.Minute, func(context.Context) (string, error) {
		if left := c.leases(node, n); len(left) > 0 {
			return fmt.Sprintf("leases are left: %v", left), nil
		}
		return "", nil
	})
}

// back waits until the pods that ran before a reboot run again, with other addresses.
func (c *cluster) back(node string, n hostNetwork) {
	c.Helper()
	c.eventually(2*time.Minute, func(context.Context) (string, error) {
		held, known := c.leases(node, n), c.sandboxes(node)
		for _, pod := range c.podsOf("running") {
			lives := func(l lease) bool { return l.ip.String() == pod.Status.PodIP && slices.Contains(known, l.sandbox) }
			if !ready(pod) || !slices.ContainsFunc(held, lives) {
				return fmt.Sprintf("pod %s is not back; it shows %s", pod.Name, pod.Status.PodIP), nil
			}
		}
		return "", nil
	})
}
