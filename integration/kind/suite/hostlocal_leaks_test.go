package suite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// leakUntilFull has ten pods start where the last plugin is missing. Each try of the kubelet
// makes a sandbox: ptp and host-local succeed, the last plugin fails, and so does its DEL,
// which is the first to be called. containerd ignores that, forgets the sandbox, and never
// calls the DEL of the others (containerd 12130).
func (c *cluster) leakUntilFull(node string, n hostNetwork) {
	c.Helper()
	const replicas = 10
	c.connectPods(node, n, removedPlugin)
	c.scale("hanging", replicas)
	c.eventually(3*time.Minute, func(context.Context) (string, error) {
		if held := len(c.leases(node, n)); held < rangeSize {
			return fmt.Sprintf("%d of %d addresses are taken", held, rangeSize), nil
		}
		return "", nil
	})
	c.eventually(30*time.Second, func(context.Context) (string, error) {
		held, leaked := c.leases(node, n), c.leaked(node, n)
		if len(leaked) < rangeSize-len(c.podsOf("running")) {
			return fmt.Sprintf("of %d leases, %d have no sandbox", len(held), len(leaked)), nil
		}
		return "", nil
	})
}

// startAgent starts the agent that agentPlugin asks.
func (c *cluster) startAgent(node string) {
	c.Helper()
	c.docker("exec", node, "touch", "/run/agent.sock")
}

// leakByReboot leaks some addresses and reboots the node. The leases are still there then,
// and the tries of the kubelet leak the others as long as the agent is not there. It
// returns what leaked.
func (c *cluster) leakByReboot(node string, n hostNetwork) []lease {
	c.Helper()
	c.inside(node, "agent-plugin.sh", agentPlugin)
	c.startAgent(node)
	c.connectPods(node, n, agentPlugin)
	c.scale("running", 3)
	c.started("running", time.Minute)
	c.docker("exec", node, "rm", "/run/agent.sock")
	const hanging = 3
	c.scale("hanging", hanging)
	// One try of each pod may be under way, whose sandbox is not there yet. A reboot leaves it behind.
	var before []lease
	c.eventually(2*time.Minute, func(context.Context) (string, error) {
		if before = c.leaked(node, n); len(before) < hanging+3 {
			return fmt.Sprintf("%d addresses leaked before the reboot", len(before)), nil
		}
		return "", nil
	})
	c.docker("restart", node)
	_, err := c.command("", filepath.Join(c.root, "integration", "kind", "network.sh"), node)
	c.must(err)
	c.eventually(3*time.Minute, func(context.Context) (string, error) {
		if _, err := c.command("", "docker", "exec", node, "crictl", "version"); err != nil {
			return "", err
		}
		if held := len(c.leases(node, n)); held < rangeSize {
			return fmt.Sprintf("%d of %d addresses are taken", held, rangeSize), nil
		}
		return "", nil
	})
	leaked := c.aged(node, n)
	c.Logf("after the reboot %d of %d leases have no sandbox, %d of them from before", len(leaked), rangeSize, len(before))
	gone := slices.DeleteFunc(slices.Clone(before), func(l lease) bool { return slices.ContainsFunc(leaked, l.same) })
	if len(gone) > hanging {
		c.Errorf("of %d addresses that leaked before the reboot, these are not there: %v", len(before), gone)
	}
	return leaked
}
