package run_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// everywhere is a policy that waits for nothing, over all stores.
const everywhere = header + "gracePeriod: 0s\nlimits: {maxFraction: 1}\n"

// How two runs come to go on at the same time.
var unlocked = []struct {
	name   string
	unlock func(*twoStores, *proxy.Proxy)
}{
	{"no right to the lease", func(_ *twoStores, p *proxy.Proxy) {
		p.Before(proxy.On("get leases"), proxy.Always(proxy.Forbidden()))
	}},
	{"the lease is deleted", func(c *twoStores, p *proxy.Proxy) {
		p.After(proxy.On("create leases"), func(ctx context.Context, _ proxy.Request) proxy.Action {
			err := c.Kube.CoordinationV1().Leases(home).Delete(ctx, "ip-reaper", metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				c.Error(err)
			}
			return proxy.Pass()
		})
	}},
}

// Two runs without a lock have listed the same leaks, and release them at the same
// time, while pods come back under the names of those leaks, others come, go and
// crash, and freed addresses are given out anew. No live pod lacks what its ADDs
// gave, each leak ends once, and what is left is what is alive (promises 1, 7 and 8).
func TestEveryWayToRunWithoutALock(t *testing.T) {
	const leaks, workers, lives = 8, 2, 4
	ways := unlocked
	if testing.Short() {
		ways = ways[:1]
	}
	for _, tt := range ways {
		t.Run(tt.name, func(t *testing.T) {
			c := newTwoStores(t)
			c.mustBringUp("resident")
			var leaked []sandbox
			for i := range leaks {
				d, err := c.add(t.Context(), fmt.Sprintf("leak-%d", i))
				c.must(err)
				leaked = append(leaked, d)
			}
			ended := c.history()
			var wg sync.WaitGroup
			defer wg.Wait()
			for w := range workers {
				wg.Go(func() { c.lives(w, lives) })
			}

			// Both are about to write the pool when pods adopt entries in it.
			first, second := c.two(tt.unlock)
			one, other := first.hold("patch ippools"), second.hold("patch ippools")
			back, gone := leaked[:2], leaked[2:]
			for _, d := range back {
				c.mustBringUp(d.sandbox.Pod)
			}
			one.Open()
			other.Open()
			results := c.ends(first, second)
			for range 2 { // while pods still come and go
				first, second = c.two(tt.unlock)
				results = append(results, c.ends(first, second)...)
			}
			wg.Wait()

			c.wantEnded(ended(), leaked)
			c.wantReleased(results, gone)
			c.reapAlone()
			for _, d := range back { // of Calico they have another address, and the old one waits for four minutes
				c.want["block "+d.eth0.String()] = d.sandbox.Handle()
			}
			if diff := cmp.Diff(c.want, c.holdings()); diff != "" {
				t.Errorf("holdings (-want +got):\n%s", diff)
			}
			_, err := c.calico.Allocated(t.Context()) // and every block is what Calico relies on
			c.must(err)
			if last := fmt.Sprint(said(c.reapAlone())); strings.Contains(last, "orphan") {
				t.Errorf("something is left: %s", last)
			}
		})
	}
}

// reapAlone runs once more, undisturbed.
func (c *twoStores) reapAlone() *reap.Report {
	c.Helper()
	c.kubeconfig = c.Kubeconfig
	return c.reap(reap.ExitDone, everywhere).Report
}

// wantEnded fails the test unless the entry of each leak came to its end once: it was
// released, or adopted, and it did not come back.
func (c *twoStores) wantEnded(ends map[string]int, leaked []sandbox) {
	c.Helper()
	for _, d := range leaked {
		key := "entry " + d.net1.String()
		if n := ends[key+" "+d.holdings()[key]]; n != 1 {
			c.Errorf("the entry of %s ended %d times, want once", d.sandbox.Pod, n)
		}
	}
}

// wantReleased fails the test unless the runs together released all that the leaks had,
// and none of them says that it failed.
func (c *twoStores) wantReleased(results []reap.Result, leaked []sandbox) {
	c.Helper()
	released := map[string]bool{}
	for _, r := range results {
		for _, e := range r.Report.Entries {
			switch e.Outcome {
			case "failed":
				c.Errorf("%s %s of %s: %s", e.Backend, e.IP, e.Owner.Pod, e.Error)
			case "released":
				released[e.Backend+" "+e.Owner.Pod] = true
			}
		}
	}
	for _, d := range leaked {
		for _, backend := range []string{"whereabouts", "overlapping", "calico"} {
			if !released[backend+" "+d.sandbox.Pod] {
				c.Errorf("no run says that it released %s of %s", backend, d.sandbox.Pod)
			}
		}
	}
}

// A heldRun is one of two runs without a lock, and the gate at which it waits.
type heldRun struct {
	*reap.Process
	proxy *proxy.Proxy
	gate  *proxy.Gate
}

// two starts two runs without a lock, and returns when both have listed the stores and
// are about to ask who is alive.
func (c *twoStores) two(unlock func(*twoStores, *proxy.Proxy)) (first, second *heldRun) {
	c.Helper()
	one := func() *heldRun {
		t := &heldRun{gate: proxy.NewGate()}
		t.proxy, c.kubeconfig = c.proxy()
		unlock(c, t.proxy)
		t.proxy.Before(proxy.First(1, proxy.On("list pods")), t.gate.Hook)
		t.Process = c.start(everywhere)
		<-t.gate.Arrived()
		return t
	}
	return one(), one()
}

// hold lets the run go on to the first request of a kind, and returns when that has
// arrived at the next gate.
func (t *heldRun) hold(request string) *proxy.Gate {
	next := proxy.NewGate()
	t.proxy.Before(proxy.First(1, proxy.On(request)), next.Hook)
	t.gate.Open()
	<-next.Arrived()
	t.gate = nil
	return next
}

// ends lets both runs go on, and waits for their ends.
func (c *twoStores) ends(both ...*heldRun) []reap.Result {
	c.Helper()
	for _, t := range both {
		if t.gate != nil {
			t.gate.Open()
		}
	}
	var results []reap.Result
	for _, t := range both {
		results = append(results, t.EndT(c, reap.ExitDone))
	}
	return results
}

// mustBringUp has a pod live that was there before: its ADD may adopt an old entry of
// Whereabouts, and gets another address of Calico.
func (c *twoStores) mustBringUp(pod string) {
	if _, err := c.bringUp(c.Context(), pod); err != nil {
		c.Error(err)
	}
}

// lives has pods live one after the other: some stay, some leave as they should, and
// some crash.
func (c *twoStores) lives(worker, n int) {
	for i := range n {
		pod := fmt.Sprintf("pod-%d-%d", worker, i)
		d, err := c.bringUp(c.Context(), pod)
		if err != nil {
			c.Error(err)
			return
		}
		if i%3 == 0 {
			continue
		}
		c.expectNone(d)
		if i%3 == 1 {
			if err := c.del(c.Context(), d); err != nil {
				c.Error(err)
			}
		}
		c.dies(pod)
	}
}
