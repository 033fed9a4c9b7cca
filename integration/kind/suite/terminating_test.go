package suite_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What terminating.yaml makes.
const (
	edges     = "edges" // the namespace
	edgesPool = 8       // the addresses that there are for the pod looping
)

// A sandbox may outlive its pod, and a pod its sandboxes. What is alive keeps its address
// (promise 1), and what is dead leaves it to the pod that waits for it.
func TestPodsAndSandboxesThatDoNotEndTogether(t *testing.T) {
	c := connect(t)
	c.install("plan", "job")
	defer c.edgesEnd()
	c.edgesBegin()
	g := c.watch()
	defer g.stop()

	var loop []allocation // the first to the last
	c.step("a chain that fails costs a pod an address a try, until the pool is dry", func(c *cluster) {
		c.eventually(2*time.Minute, func(context.Context) (string, error) {
			if loop = c.ofPod("looping"); len(loop) < edgesPool {
				return fmt.Sprintf("%d of %d addresses are taken", len(loop), edgesPool), nil
			}
			return "", nil
		})
		c.readyPods(time.Minute, "stuck", "frozen", "ended", c.mirror())
		c.leavesBoth("again")
		c.job("ip-reaper", "edges-before") // remembers where the pods of Whereabouts' addresses are
	})

	var stuck, ended, old []allocation
	c.step("the phase of a pod is terminal only when its sandbox is stopped", func(c *cluster) {
		stuck = append(c.ofPod("stuck"), c.ofPod("frozen")...)
		ended = c.ofPod("ended")
		c.leavesBoth("again")
		c.dieUnseen("ended", "again")
		c.freeze("STOP")
		c.kubectl("-n", edges, "delete", "pod", "stuck", "frozen", "--wait=false")
		c.kubectl("-n", edges, "wait", "pod", "again", "--for=delete", "--timeout=2m")
		old = c.ofPod("again")
		if count(old, calico) != 1 || count(old, whereabouts) != 1 {
			c.Fatalf("the pod left %v, want an address of each store", old)
		}
		c.overdue("stuck", "frozen", "ended")
		c.wantTerminal(map[string]bool{"stuck": false, "frozen": false, "ended": true})
		c.job("ip-reaper", "edges-overdue") // sees them
	})

	c.step("what lives stays, and what is dead goes", func(c *cluster) {
		c.kubectl("-n", edges, "delete", "pod", "stuck", "frozen", "--force", "--grace-period=0")
		c.kubectl(finish...)
		c.accept("ADD.looping", "DEL.looping", "ADD.again", "DEL.again") // too late for these two
		c.eventually(5*time.Minute, func(context.Context) (string, error) {
			made, err := time.Parse("2006-01-02 15:04:05.999999999 -0700 MST", old[0].made)
			if age := time.Since(made); age < 245*time.Second {
				return fmt.Sprintf("the address of the earlier pod is %v old, and clocks may differ by 4 minutes", age), err
			}
			return "", err
		})
		c.apply("terminating-again.yaml")
		c.readyPods(time.Minute, "frozen")
		c.install("suspended") // runs begin here
		c.wantMirrorKept()

		dead, last, runs := loop[:edgesPool-1], loop[edgesPool-1:], 0
		c.eventually(8*time.Minute, func(context.Context) (string, error) {
			before := c.still(dead)
			c.job("ip-reaper", fmt.Sprintf("edges-%d", runs))
			runs++
			c.wantAlive(stuck)
			c.wantAdoptable(old)
			left := c.still(dead)
			if hung := len(before) == len(dead); hung && len(left) < len(before) && len(c.still(last)) == 0 {
				c.Fatalf("%v of the last sandbox of a pod that hung was released", last)
			}
			if left = append(left, append(c.still(ended), c.still(old[:1])...)...); len(left) > 0 {
				return fmt.Sprintf("dead sandboxes have %v", left), nil
			}
			return "", nil
		})
		c.readyPods(3*time.Minute, "looping", "again", "frozen", c.mirror())
		if ip := netip.MustParseAddr("10.244.1.77"); !slices.ContainsFunc(c.ofPod("again"), func(a allocation) bool { return a.ip == ip }) {
			c.Errorf("the pod has %v, and asked for %s", c.ofPod("again"), ip)
		}
		c.wantAdoptable(old)
	})

	c.step("addresses whose sandboxes may live are held for that, until the node has stopped them", func(c *cluster) {
		theirs := c.inUse(edges)
		c.job("ip-reaper", "edges-held")
		if log := c.kubectl("-n", home, "logs", "job/edges-held"); strings.Count(log, "TerminationStuck") < len(stuck) {
			c.Errorf("the report has no TerminationStuck for each of %v", stuck)
		}
		c.freeze("CONT")
		c.accept("DEL.stuck")
		c.eventually(3*time.Minute, func(context.Context) (string, error) {
			if left := c.still(stuck); len(left) > 0 {
				return fmt.Sprintf("no DEL released %v", left), nil
			}
			return "", nil
		})
		if still := c.still(theirs); len(still) != len(theirs) {
			c.Errorf("of %v there are %v", theirs, still)
		}
	})
}

// ofPod returns what the stores hold for a pod, Calico's first, by their times.
func (c *cluster) ofPod(name string) []allocation {
	c.Helper()
	all := slices.DeleteFunc(c.of(edges), func(a allocation) bool { return a.pod != edges+"/"+name })
	slices.SortFunc(all, func(a, b allocation) int {
		return strings.Compare(a.store+a.made, b.store+b.made)
	})
	return all
}

// leavesBoth waits until the agent holds the ADD of a pod that has an address of each store.
func (c *cluster) leavesBoth(name string) {
	c.Helper()
	c.eventually(2*time.Minute, func(context.Context) (string, error) {
		tries := strings.Fields(c.docker("exec", workerA, "awk", "$1 == \"ADD."+name+"\" {print $2}", refusedLog))
		left := c.ofPod(name)
		if len(tries) == 0 || count(left, calico) != 1 || count(left, whereabouts) != 1 ||
			slices.ContainsFunc(left, func(a allocation) bool { return a.sandbox != tries[len(tries)-1] }) {
			return fmt.Sprintf("pod %s leaves %v, want an address of each store for the last of %.8s", name, left, tries), nil
		}
		return "", nil
	})
}

// readyPods waits until the pods are ready.
func (c *cluster) readyPods(within time.Duration, names ...string) {
	c.Helper()
	c.eventually(within, func(ctx context.Context) (string, error) {
		for _, name := range names {
			pod, err := c.kube.CoreV1().Pods(edges).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			if !ready(*pod) {
				return "pod " + name + " is not ready", nil
			}
		}
		return "", nil
	})
}
