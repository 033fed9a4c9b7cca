package crash_test

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// terminate tells a process to stop.
func terminate(h *proxy.Held) error { return h.Signal(syscall.SIGTERM) }

// later matches the first request of a kind after one of another kind.
func later(first, then string) proxy.Match {
	var seen atomic.Bool
	return func(r proxy.Request) bool {
		if r.String() == first {
			seen.Store(true)
		}
		return seen.Load() && r.String() == then
	}
}

// A step is where a run is stopped.
type step struct {
	name string
	at   func() proxy.Match
	long bool // not with -short
}

func on(request string) func() proxy.Match {
	return func() proxy.Match { return proxy.On(request) }
}

var steps = []step{
	{"while pods are listed", on("list pods"), true},
	{"at the second pool", func() proxy.Match { return proxy.Nth(2, proxy.On("patch ippools")) }, false},
	{"at a tombstone", on("patch overlappingrangeipreservations"), false},
	{"between a tombstone and the second look", func() proxy.Match {
		return later("patch overlappingrangeipreservations", "get pods")
	}, true},
	{"at a delete", on("delete overlappingrangeipreservations"), true},
	{"while a block is written", on("update ipamblocks"), false},
}

// A run that is told to stop does so: it prints its report, which is true, exits as documented, and leaves nothing that the next run does not
// finish (promises 7 and 8). The write at which it is stopped is done behind its
// back.
func TestEveryStepARunIsStoppedAt(t *testing.T) {
	w, _ := fixture(t)
	for _, s := range steps {
		if !s.long || !testing.Short() {
			w.Sub(s.name, func() { stopped(w, s) })
		}
	}
}

// stopped has a run stopped at a step.
func stopped(w *kit.World, s step) {
	w.Helper()
	w.Again()
	result, err := proxy.Stop(w.Proxy, s.at(), runs(w), terminate)
	w.Must(err)
	w.WantExit(reap.ExitSignal, result)
	if result.Report == nil {
		w.Fatalf("no report\n%s", result.Stderr)
	}
	w.WantInUse()
	wantTrueOr(w, result.Report, s.name)
	unbegun := slices.ContainsFunc(result.Report.Entries, func(e reap.Entry) bool { return e.Outcome == "notBegun" && e.Error == "interrupted" })
	if releasing := s.name != "while pods are listed"; unbegun != releasing {
		w.Errorf("%s: the report has releases that were not begun: %v", s.name, unbegun)
	}
	w.Converge()
}

// A run ends within 10 seconds of SIGTERM, also when nothing that it asks is answered any more, and no
// Pushgateway either. Its report is true, and the next run finishes what it leaves.
func TestRunThatIsStoppedEndsThoughNothingAnswers(t *testing.T) {
	w, _ := fixture(t)
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	w.Must(err)
	defer func() { _ = silent.Close() }()
	for _, at := range some([]string{"update ipamhandles"}, []string{"create configmaps", "patch ippools"}) {
		w.Sub(at, func() {
			w.Again()
			w.Must(w.Memory.Unlock(w.Context()))
			run := w.Starts("run", kit.ReleaseNow, kit.InOrder, "--all", "--push-url=http://"+silent.Addr().String())
			h, err := proxy.Hold(w.Proxy, proxy.On(at), run)
			w.Must(err)
			others := proxy.NewGate()
			w.Proxy.Before(proxy.Any, others.Hook)
			began := time.Now()
			w.Must(terminate(h))
			result, err := h.Wait()
			took := time.Since(began)
			w.Must(err)
			w.WantExit(reap.ExitSignal, result)
			if took > busy*10*time.Second {
				w.Errorf("it ends after %v", took)
			}
			if result.Report == nil {
				w.Fatalf("no report\n%s", result.Stderr)
			}
			wantTrue(w, result.Report)
			others.Open()
			h.Open()
			w.WantInUse()
			w.Must(w.Memory.Unlock(w.Context()))
			w.Converge()
		})
	}
}

// busy is how many times longer than it should a process may take on a busy machine.
const busy = 2

// wantTrueOr is wantTrue. A block that was written when the run had given up on it
// is not what the report says that it knows: that of its addresses must be that they
// failed.
func wantTrueOr(w *kit.World, r *reap.Report, name string) {
	w.Helper()
	wantTrue(w, r)
	if name != "while a block is written" {
		return
	}
	for _, e := range r.Entries {
		ip, err := netip.ParseAddr(e.IP)
		if e.Backend == "calico" && err == nil && strings.HasPrefix(e.Owner.Pod, "gone") && (e.Outcome == "released" || e.Error == "") {
			w.Errorf("%s: %s %q, want that it was not released, or that it is not known", ip, e.Outcome, e.Error)
		}
	}
}

// A restoration that is told to stop does so: its report is true, and the next one finishes
// what it has left (promises 7 and 8). The write is done behind its back.
func TestEveryStepARestorationIsStoppedAt(t *testing.T) {
	w, id := released(t)
	for _, at := range some([]string{"patch ippools"}, []string{
		"create ipamhandles", "update ipamblocks", "create overlappingrangeipreservations",
	}) {
		w.Sub(at, func() {
			w.Put(w.End)
			w.Must(w.Memory.Unlock(w.Context()))
			result, err := proxy.Stop(w.Proxy, proxy.On(at), w.Starts("restore", kit.ReleaseNow, "--run="+id), terminate)
			w.Must(err)
			w.WantExit(reap.ExitSignal, result)
			first := w.RestoreReportOf(result)
			w.WantInUse()
			if first.Summary.Failed == 0 {
				w.Error("the report does not tell what was not begun")
			}
			then := w.Restore(id).Outcomes()
			for entry, outcome := range first.Outcomes() {
				if outcome == "restored" && then[entry] != "present" {
					w.Errorf("the report says that %s was put back, and then it was %s", entry, then[entry])
				}
			}
			w.WantStores("after the next restoration", w.Before)
		})
	}
}
