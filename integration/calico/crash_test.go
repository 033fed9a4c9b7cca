package calico_test

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/engine"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// inOrder has one block written after the other.
const inOrder = "--concurrency=1"

// A wreck is what crashes and faults are tried on, in the Kubernetes datastore:
// two sandboxes whose pods are alive, two whose pods are gone, and an old one of a
// pod that is alive, which has to wait: the ledger remembers it. One of each two
// has addresses of both families.
type wreck struct {
	*fixture
	toReaper *proxy.Proxy
	leaked   []calico.Sandbox // without the old one

	ips    []netip.Addr    // of the leaked
	kept   map[string]bool // addresses
	stored []stored
}

// A stored is an object as it was.
type stored struct {
	kind calico.Kind
	calico.Object
}

func newWreck(t *testing.T) *wreck {
	t.Helper()
	w := &wreck{fixture: newFixture(t, calico.KubernetesT(t)), kept: map[string]bool{}}
	w.toReaper = w.watched()
	for _, pod := range []string{"live-1", "live-2"} {
		sandbox := calico.NewSandbox(shop, pod, node)
		sandbox.IPv4, sandbox.IPv6 = true, pod == "live-2"
		ips, err := w.Add(w.Context(), sandbox)
		w.must(err)
		w.must(w.CreatePod(w.Context(), sandbox, ips))
		for _, ip := range ips {
			w.kept[ip.String()] = true
		}
	}
	single, dual := calico.NewSandbox(shop, "gone-1", node), calico.NewSandbox(shop, "gone-2", node)
	dual.IPv4, dual.IPv6 = true, true
	w.leaked = []calico.Sandbox{single, dual}
	for _, sandbox := range append(w.leaked, calico.NewSandbox(shop, "live-1", node)) {
		ips, err := w.Add(w.Context(), sandbox)
		w.must(err)
		if sandbox.Pod != "live-1" {
			w.ips = append(w.ips, ips...)
		}
	}
	for _, kind := range []calico.Kind{calico.Block, calico.Handle} {
		list, err := w.List(w.Context(), kind)
		w.must(err)
		for _, o := range list {
			w.stored = append(w.stored, stored{kind, o})
		}
	}
	return w
}

// again leaks what was leaked at first, under the same handles, and forgets the
// ledger.
func (w *wreck) again() {
	w.Helper()
	w.toReaper.Reset()
	for _, o := range w.stored {
		w.must(w.Put(w.Context(), o.kind, o.Name, o.Content))
	}
	err := w.Cluster.Kube.CoreV1().ConfigMaps(cluster.PoolNamespace).
		Delete(w.Context(), "ip-reaper-ledger", metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		w.must(err)
	}
}

// writes are those of an undisturbed run.
func (w *wreck) writes() []proxy.Request {
	w.Helper()
	w.again()
	w.mustReap(reap.ExitDone, releaseNow, inOrder)
	var writes []proxy.Request
	for _, r := range w.toReaper.Requests() {
		if r.Mutating() && r.Resource != "leases" && r.Resource != "events" {
			writes = append(writes, r)
		}
	}
	w.converges()
	return writes
}

// converges runs until whatever a ledger remembers is due, and fails the test
// unless that leaves what is alive and nothing else. A handle that counts an
// address too many has to wait from the run on that takes its other addresses.
func (w *wreck) converges() {
	w.Helper()
	w.toReaper.Reset()
	for _, after := range []time.Duration{0, 10 * time.Minute, 20 * time.Minute} {
		_, err := w.engine(engine.After(after)).Run(w.Context(), releaseNow)
		w.must(err)
	}
	w.wantWhole(w.kept)
}

// wantKept fails the test if an address of those alive is not theirs.
func (w *wreck) wantKept() {
	w.Helper()
	held := w.held()
	for ip := range w.kept {
		if !held[ip] {
			w.Errorf("%s is not allocated any more", ip)
		}
	}
}

// A moment is where a process is killed: before its write is forwarded, or when
// the API server has answered and the process has not heard of it.
type moment struct {
	name string
	hook func(*proxy.Proxy, proxy.Match, proxy.Hook)
}

var moments = []moment{
	{"before", (*proxy.Proxy).Before},
	{"after", (*proxy.Proxy).After},
}

// killed runs, and kills the run, as kill -9 does, at the write.
func (w *wreck) killed(at moment, write proxy.Request) {
	w.Helper()
	process := make(chan *reap.Process, 1)
	same := func(r proxy.Request) bool { return r.String() == write.String() && r.Name == write.Name }
	at.hook(w.toReaper, proxy.Nth(1, same), func(context.Context, proxy.Request) proxy.Action {
		if err := (<-process).Kill(); err != nil {
			w.Error(err)
		}
		return proxy.Drop()
	})
	p := w.start(releaseNow, inOrder)
	process <- p
	result, err := p.Wait()
	w.must(err)
	if result.ExitCode != reap.ExitedByKill {
		w.Fatalf("exit code %d, want it killed\n%s", result.ExitCode, result.Stderr)
	}
}

// A run that is killed at any of its writes loses nothing that is in use, and
// what it leaves the next runs bring to the same end as if nothing had happened
// (promise 8). They may also find that DELs came in between, which release what
// they know of.
func TestNextRunFinishesWhatAKilledOneLeft(t *testing.T) {
	w := newWreck(t)
	writes := w.writes()
	if len(writes) != 7 {
		t.Fatalf("%v, want a ledger, a journal, two blocks and three handles", writes)
	}
	for _, write := range writes {
		for _, at := range moments {
			t.Run(at.name+" "+write.String()+" "+write.Name, func(t *testing.T) {
				w.T = t
				w.again()
				w.killed(at, write)
				w.wantKept()
				w.converges()
			})
		}
	}
}

// Between the two runs the kubelet has the plugin take back what it knows of, or
// a sandbox gets another address under the handle that was left.
func TestNextRunFinishesWhatAKilledOneAndThePluginLeft(t *testing.T) {
	w := newWreck(t)
	block := w.writes()
	block = slices.DeleteFunc(block, func(r proxy.Request) bool { return r.Resource != "ipamblocks" })
	for _, write := range block {
		t.Run("DELs after update "+write.Name, func(t *testing.T) {
			w.T = t
			w.again()
			w.killed(moments[1], write)
			for _, sandbox := range w.leaked {
				w.must(w.Del(t.Context(), sandbox))
			}
			w.wantKept()
			w.converges()
		})
	}
	t.Run("ADDs after update "+block[0].Name, func(t *testing.T) {
		w.T = t
		w.again()
		w.killed(moments[1], block[0])
		alone := maps.Clone(w.kept)
		for _, sandbox := range w.leaked {
			ips, err := w.Add(t.Context(), sandbox)
			w.must(err)
			w.must(w.CreatePod(t.Context(), sandbox, ips))
			for _, ip := range ips {
				w.kept[ip.String()] = true
			}
		}
		w.mustReap(reap.ExitDone, releaseNow)
		w.wantKept()
		for _, sandbox := range w.leaked {
			w.must(w.Del(t.Context(), sandbox))
			w.dies(sandbox)
		}
		w.kept = alone
		w.converges()
	})
}

// A run that is told to stop when it has written a block writes its handles, and
// begins no other block. Its report is true (promises 7 and 8).
func TestRunThatIsToldToStopWritesTheHandlesOfItsBlocks(t *testing.T) {
	w := newWreck(t)
	w.again()
	process := make(chan *reap.Process, 1)
	handle := func(r proxy.Request) bool { return r.Mutating() && r.Resource == "ipamhandles" }
	w.toReaper.Before(proxy.Nth(1, handle), func(context.Context, proxy.Request) proxy.Action {
		if err := (<-process).Signal(syscall.SIGTERM); err != nil {
			w.Error(err)
		}
		time.Sleep(500 * time.Millisecond) // long enough to exit, if it did
		return proxy.Pass()
	})
	p := w.start(releaseNow, inOrder)
	process <- p
	result, err := p.Wait()
	w.must(err)
	w.wantStopped(result)
	w.wantCounts()
	want := map[netip.Addr]string{}
	for _, ip := range w.ips {
		want[ip] = "released"
		if ip.Is6() {
			want[ip] = "kept"
		}
	}
	for _, e := range result.Report.Entries {
		ip := netip.MustParseAddr(e.IP)
		if slices.Contains(w.ips, ip) && (e.Outcome != want[ip] || (e.Error == "") != (e.Outcome == "released")) {
			w.Errorf("%s: %s %q, want %s", ip, e.Outcome, e.Error, want[ip])
		}
	}
	w.converges()
}

// A run that is told to stop while a block is being written does not know what
// became of it, and says so.
func TestRunThatIsToldToStopInTheMidstOfAWriteSaysSo(t *testing.T) {
	w := newWreck(t)
	w.again()
	process, over := make(chan *reap.Process, 1), make(chan struct{})
	write := proxy.On("update ipamblocks")
	w.toReaper.Before(proxy.Nth(1, write), func(context.Context, proxy.Request) proxy.Action {
		if err := (<-process).Signal(syscall.SIGTERM); err != nil {
			w.Error(err)
		}
		select {
		case <-over:
		case <-time.After(20 * time.Second):
			w.Error("the run does not end")
		}
		return proxy.Pass() // behind its back
	})
	written := make(chan struct{})
	w.toReaper.After(proxy.Nth(1, write), func(context.Context, proxy.Request) proxy.Action {
		close(written)
		return proxy.Pass()
	})
	p := w.start(releaseNow, inOrder)
	process <- p
	result, err := p.Wait()
	w.must(err)
	close(over)
	<-written
	w.wantStopped(result)
	for _, e := range result.Report.Entries {
		if slices.Contains(w.ips, netip.MustParseAddr(e.IP)) && (e.Outcome == "released" || e.Error == "") {
			w.Errorf("%s: %s %q, want that it was not released, or that it is not known", e.IP, e.Outcome, e.Error)
		}
	}
	w.wantKept()
	w.converges()
}

// wantStopped fails the test unless the run was interrupted, and its report is
// true: what was released is free, what was kept is not.
func (w *wreck) wantStopped(result reap.Result) {
	w.Helper()
	if result.ExitCode != reap.ExitSignal || result.Report == nil {
		w.Fatalf("exit code %d, want %d and a report\n%s", result.ExitCode, reap.ExitSignal, result.Stderr)
	}
	w.wantTrue(result.Report)
}

// wantTrue fails the test unless what the report calls released is free, and what
// it calls anything else is not; but for failures, of which it must say why.
func (w *wreck) wantTrue(report *reap.Report) {
	w.Helper()
	held := w.held()
	for _, e := range report.Entries {
		switch {
		case e.IP == "":
		case e.Outcome == "failed":
			if strings.TrimSpace(e.Error) == "" {
				w.Errorf("%s failed, and the report does not say why", e.IP)
			}
		case held[e.IP] == (e.Outcome == "released"):
			w.Errorf("%s: %s; it is allocated: %t", e.IP, e.Outcome, held[e.IP])
		}
	}
}
