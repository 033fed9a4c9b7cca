package calico_test

import (
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/engine"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// What becomes of the addresses of a run that meets a fault.
const (
	done       = "done"       // released, and nothing is left of them
	unfinished = "unfinished" // released, and the report says what is left of them
	failed     = "failed"     // not released, and the report says why
	untouched  = "untouched"  // not even judged to be orphans
)

// Whatever goes wrong with a request, the run does all the same what it is there
// for, or says what it could not do; and the next runs do the rest (promises 2,
// 7, 8 and 9).
func TestFaultsAreOvercomeOrReported(t *testing.T) {
	const always = math.MaxInt64
	elsewhere := proxy.Answer(http.StatusNotFound, metav1.StatusReasonNotFound, "injected: no such route")
	w := newWreck(t)
	for _, tt := range []struct {
		name    string
		first   int64 // so many of the requests
		request string
		action  proxy.Action
		lost    bool // the request is carried out, and its answer is another
		want    string
	}{
		{"409", 5, "update ipamblocks", proxy.Conflict(), false, done},
		{"409", always, "update ipamblocks", proxy.Conflict(), false, failed},
		{"500", 2, "update ipamblocks", proxy.InternalError(), false, done},
		{"500", always, "update ipamblocks", proxy.InternalError(), false, failed},
		{"403", always, "update ipamblocks", proxy.Forbidden(), false, failed},
		{"broken connection", 1, "update ipamblocks", proxy.Drop(), false, done},
		{"answer lost", 2, "update ipamblocks", proxy.Drop(), true, done},
		{"500 for an answer", 2, "update ipamblocks", proxy.InternalError(), true, done},

		{"500", 1, "get ipamblocks", proxy.InternalError(), false, done},
		{"404 of somebody else", always, "get ipamblocks", elsewhere, false, failed},

		{"409", 5, "delete ipamhandles", proxy.Conflict(), false, done},
		{"409", 5, "update ipamhandles", proxy.Conflict(), false, done},
		{"500", 3, "delete ipamhandles", proxy.InternalError(), false, done},
		{"429", 1, "update ipamhandles", proxy.TooManyRequests(0), false, done},
		{"answer lost", 1, "delete ipamhandles", proxy.Drop(), true, done},
		{"answer lost", 1, "update ipamhandles", proxy.Drop(), true, done},
		{"403", always, "delete ipamhandles", proxy.Forbidden(), false, unfinished},
		{"403", always, "update ipamhandles", proxy.Forbidden(), false, unfinished},
		{"404 of somebody else", always, "delete ipamhandles", elsewhere, false, unfinished},

		{"500", always, "list ipamblocks", proxy.InternalError(), false, untouched},
		{"403", always, "list ipamhandles", proxy.Forbidden(), false, untouched},
		{"404 of somebody else", always, "list ipamblocks", elsewhere, false, untouched},
		{"404 of somebody else", always, "get clusterinformations", elsewhere, false, untouched},
		{"404 of somebody else", always, "get customresourcedefinitions", elsewhere, false, untouched},
	} {
		times := " to the first "
		if tt.first == always {
			times = " to every "
		}
		t.Run(tt.name+times+tt.request, func(t *testing.T) {
			w.T = t
			w.again()
			inject := w.toReaper.Before
			if tt.lost {
				inject = w.toReaper.After
			}
			inject(proxy.First(tt.first, proxy.On(tt.request)), proxy.Always(tt.action))
			w.wantFate(w.reap(releaseNow), tt.want)
			w.converges()
		})
	}
}

// wantFate fails the test unless that is what became of the leaked addresses.
func (w *wreck) wantFate(result reap.Result, want string) {
	w.Helper()
	exit := reap.ExitPartial
	if want == done {
		exit = reap.ExitDone
	}
	if result.ExitCode != exit || result.Report == nil {
		w.Fatalf("exit code %d, want %d and a report\n%s", result.ExitCode, exit, result.Stderr)
	}
	w.wantTrue(result.Report)
	w.wantKept()
	if want == untouched {
		i := slices.IndexFunc(result.Report.Backends, func(b reap.Backend) bool { return b.Name == "calico" })
		if b := result.Report.Backends[i]; b.Status != "failed" || b.Message == "" || len(result.Report.Entries) > 0 {
			w.Errorf("backend %+v with %d entries, want that it failed and why", b, len(result.Report.Entries))
		}
		return
	}
	told := 0
	for _, e := range result.Report.Entries {
		if e.IP == "" || !slices.Contains(w.ips, netip.MustParseAddr(e.IP)) {
			continue
		}
		if (e.Outcome == "released") != (want != failed) {
			w.Errorf("%s: %s %q, want %s", e.IP, e.Outcome, e.Error, want)
		}
		if e.Error != "" {
			told++
		}
		if want == unfinished && e.Error != "" && !strings.Contains(e.Error, "released, but something of it is left: handle ") {
			w.Errorf("%s: error %q does not say what is left", e.IP, e.Error)
		}
	}
	if (told > 0) != (want != done) {
		w.Errorf("%d entries with an error, want %s", told, want)
	}
	if want == done {
		w.wantCounts() // of those that are not due too
	}
}

// In etcd a block and its handles are written together, or neither.
func TestFaultsOfEtcdAreOvercomeOrReported(t *testing.T) {
	broken := status.Error(codes.Unavailable, "injected: the connection broke")
	for _, tt := range []struct {
		name string
		hook func(engine.Transaction) error
		want string
	}{
		{"broken connection", func(engine.Transaction) error { return broken }, "released"},
		{"answer lost", func(tx engine.Transaction) error {
			if err := tx.Forward(); err != nil {
				return err
			}
			return broken
		}, "released"},
		{"refused", func(engine.Transaction) error {
			return status.Error(codes.PermissionDenied, "etcdserver: permission denied")
		}, "failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t, calico.EtcdT(t))
			sandbox := calico.NewSandbox(shop, "gone", node)
			ips, err := s.Add(t.Context(), sandbox)
			s.must(err)
			_, web := s.live("web")
			report, err := s.intercepted(tt.hook).Run(s.Context(), releaseNow)
			if (err != nil) != (tt.want == "failed") {
				t.Errorf("run: %v, want %s", err, tt.want)
			}
			s.wantOutcomes(report, map[netip.Addr]string{ips[0]: tt.want, web: "kept"})
			s.mustReap(reap.ExitDone, releaseNow)
			s.wantWhole(map[string]bool{web.String(): true})
		})
	}
}
