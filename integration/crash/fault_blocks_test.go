package crash_test

import (
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/engine"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/snapshot"
	"github.com/ip-reaper/ip-reaper/integration/kit/world"
)

// What becomes of the addresses of a run that meets a fault.
const (
	done       = "done"       // released, and nothing is left of them
	unfinished = "unfinished" // released, and the report says what is left of them
	failed     = "failed"     // not released, and the report says why
	untouched  = "untouched"  // not even judged to be orphans
)

const always = math.MaxInt64

// elsewhere is an answer of a server that does not know Calico.
var elsewhere = proxy.Answer(http.StatusNotFound, metav1.StatusReasonNotFound, "injected: no such route")

// A blockFault is what goes wrong with the requests about Calico's objects.
type blockFault struct {
	name    string
	first   int64 // so many of the requests
	request string
	action  proxy.Action
	lost    bool // the request is carried out, and its answer is another
	want    string
	short   bool // also with -short: one of each fate and request
}

var blockFaults = []blockFault{
	{"409", 5, "update ipamblocks", proxy.Conflict(), false, done, true},
	{"409", always, "update ipamblocks", proxy.Conflict(), false, failed, false},
	{"500", 2, "update ipamblocks", proxy.InternalError(), false, done, false},
	{"500", always, "update ipamblocks", proxy.InternalError(), false, failed, false},
	{"403", always, "update ipamblocks", proxy.Forbidden(), false, failed, true},
	{"broken connection", 1, "update ipamblocks", proxy.Drop(), false, done, false},
	{"answer lost", 2, "update ipamblocks", proxy.Drop(), true, done, true},
	{"500 for an answer", 2, "update ipamblocks", proxy.InternalError(), true, done, false},

	{"500", 1, "get ipamblocks", proxy.InternalError(), false, done, false},
	{"404 of another server", always, "get ipamblocks", elsewhere, false, failed, true},

	{"409", 5, "delete ipamhandles", proxy.Conflict(), false, done, false},
	{"409", 5, "update ipamhandles", proxy.Conflict(), false, done, false},
	{"500", 3, "delete ipamhandles", proxy.InternalError(), false, done, false},
	{"429", 1, "update ipamhandles", proxy.TooManyRequests(0), false, done, false},
	{"answer lost", 1, "delete ipamhandles", proxy.Drop(), true, done, true},
	{"answer lost", 1, "update ipamhandles", proxy.Drop(), true, done, false},
	{"403", always, "delete ipamhandles", proxy.Forbidden(), false, unfinished, true},
	{"403", always, "update ipamhandles", proxy.Forbidden(), false, unfinished, false},
	{"404 of another server", always, "delete ipamhandles", elsewhere, false, unfinished, false},

	{"500", always, "list ipamblocks", proxy.InternalError(), false, untouched, true},
	{"403", always, "list ipamhandles", proxy.Forbidden(), false, untouched, false},
	{"404 of another server", always, "list ipamblocks", elsewhere, false, untouched, false},
	{"404 of another server", always, "get clusterinformations", elsewhere, false, untouched, false},
	{"404 of another server", always, "get customresourcedefinitions", elsewhere, false, untouched, true},
}

// If a request goes wrong, a run releases the addresses of Calico all the same, or
// says what it could not do; and the next runs do the rest (promises 2, 7, 8, 9 and
// 11).
func TestEveryFaultOfABlock(t *testing.T) {
	w, _ := fixture(t)
	for _, f := range blockFaults {
		if testing.Short() && !f.short {
			continue
		}
		times := " to the first "
		if f.first == always {
			times = " to every "
		}
		w.Sub(f.name+times+f.request, func() {
			w.Again()
			w.Must(w.Delete(w.Context(), calico.Handle, w.HandleName(w.Empty))) // it is of no block
			inject := w.Proxy.Before
			if f.lost {
				inject = w.Proxy.After
			}
			inject(proxy.First(f.first, proxy.On(f.request)), proxy.Always(f.action))
			exit := reap.ExitPartial
			if f.want == done {
				exit = reap.ExitDone
			}
			w.Must(w.Memory.Unlock(w.Context()))
			result := w.Ends(exit, w.Starts("run", world.ReleaseNow, "--all"))
			wantFate(w, result.Report, f.want)
			w.ConvergeTo(snapshot.Store.Bytes)
			wantPatient(w, result.Report)
			w.Outlast()
		})
	}
}

// wantFate fails the test unless that is what became of the addresses of Calico that
// are of pods that are gone.
func wantFate(w *world.World, r *reap.Report, want string) {
	w.Helper()
	wantTrue(w, r)
	w.WantInUse()
	blocks := slices.DeleteFunc(slices.Clone(r.Entries), func(e reap.Entry) bool { return e.Backend != "calico" })
	i := slices.IndexFunc(r.Backends, func(b reap.Backend) bool { return b.Name == "calico" })
	b := r.Backends[i]
	if want == untouched {
		if b.Status != "failed" || b.Message == "" || len(blocks) > 0 || b.Summary != (reap.Summary{}) {
			w.Errorf("backend %+v with %d entries, want that it failed, why, and nothing counted", b, len(blocks))
		}
		return
	}
	told, gone := 0, 0
	for _, e := range blocks {
		if e.IP == "" || !strings.HasPrefix(e.Owner.Pod, "gone-") {
			continue
		}
		gone++
		if (e.Outcome == "released") != (want != failed) {
			w.Errorf("%s: %s %q, want %s", e.IP, e.Outcome, e.Error, want)
		}
		if e.Error != "" {
			told++
		}
		if want == unfinished && e.Error != "" && !strings.Contains(e.Error, "released, but a later run has to remove the rest: handle ") {
			w.Errorf("%s: error %q does not say what is left", e.IP, e.Error)
		}
	}
	if gone != 3 || (told > 0) != (want != done) {
		w.Errorf("%d entries with an error of %d, want %s", told, gone, want)
	}
	if want == done {
		w.Must(w.Counted(w.Context())) // of those that wait too
	}
}

// In etcd a block and its handles are written together, or neither is (promises 7
// and 8).
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
			d := calico.EtcdT(t)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(d.Cluster.CreateNamespace(t.Context(), world.Shop))
			must(d.Ready(t.Context(), world.Node))
			gone, live := calico.NewSandbox(world.Shop, "gone", world.Node), calico.NewSandbox(world.Shop, "web", world.Node)
			leaked, err := d.Add(t.Context(), gone)
			must(err)
			ips, err := d.Add(t.Context(), live)
			must(err)
			must(d.CreatePod(t.Context(), live, ips))
			policy, _, _ := strings.Cut(world.Policy, "backends:")
			policy += "gracePeriod: 0s\n"
			e := engine.Engine{
				Kubeconfig: d.Cluster.Kubeconfig, Env: []string{"ETCD_ENDPOINTS=" + d.Etcd.Endpoint}, Only: []string{"calico"},
				Dial: []grpc.DialOption{engine.OnTransaction(tt.hook)},
			}
			report, err := e.Run(t.Context(), policy)
			if (err != nil) != (tt.want == "failed") {
				t.Errorf("run: %v, want %s", err, tt.want)
			}
			want, got := map[string]string{leaked[0].String(): tt.want, ips[0].String(): "kept"}, map[string]string{}
			for _, entry := range report.Entries {
				if _, err := netip.ParseAddr(entry.IP); err == nil {
					got[entry.IP] = entry.Outcome
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			e.Dial = nil
			_, err = e.Run(t.Context(), policy)
			must(err)
			if err := d.Whole(t.Context(), map[string]bool{ips[0].String(): true}); err != nil {
				t.Error(err)
			}
		})
	}
}
