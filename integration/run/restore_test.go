package run_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// What real ADDs have given to other pods stays theirs, and an address that a pod shows, or that an
// object keeps for another pod, is not restored, even if no store holds it. The rest is restored, and what is not is named. A dry run
// says so, and writes nothing (promises 1, 2 and 5).
func TestWhatIsTakenIsLeftAndNamed(t *testing.T) {
	w, id := afterRelease(t)
	ctx := t.Context()
	four, six := blockAddresses(w, id, "gone-1")

	p, err := plugin.New(w.Dir, w.Cluster.Kubeconfig)
	w.Must(err)
	ips, err := p.Add(ctx, kit.LAN, plugin.Pod{Namespace: shop, Name: "new-1"}, "lan-new-1", "net1")
	w.Must(err)
	_, err = w.Cluster.CreatePod(ctx, shop, "new-1", cluster.Networks(cluster.Attached(shop+"/lan", "net1", ips[0].String())))
	w.Must(err)
	sandbox := calico.NewSandbox(shop, "new-2", kit.Node)
	sandbox.IP = four
	got, err := w.Add(ctx, sandbox)
	w.Must(err)
	w.Must(w.CreatePod(ctx, sandbox, got))
	_, err = w.Cluster.CreatePod(ctx, shop, "new-3", cluster.PodIPs(six.String()))
	w.Must(err)
	w.Must(reservation("new-4", "10.2.0.2").Create(ctx, w.Cluster))

	before := w.Stores()
	w.Proxy.Reset()
	dry := w.Restores(reap.ExitPartial, "--run="+id, "--dry-run")
	if want := (kit.RestoreSummary{Records: kit.Records, Planned: kit.Records - 5, Taken: 5}); dry.Summary != want {
		t.Errorf("a dry run says %+v, want %+v", dry.Summary, want)
	}
	if writes := proxy.Writes(w.Proxy); len(writes) > 0 {
		t.Errorf("a dry run writes: %q", writes) // not even the lock is taken
	}
	r := w.Restores(reap.ExitPartial, "--run="+id)
	if want := (kit.RestoreSummary{Records: kit.Records, Restored: kit.Records - 5, Taken: 5}); r.Summary != want {
		t.Errorf("%+v, want %+v", r.Summary, want)
	}
	by := map[string]string{"10.1.0.1": "shop/new-1", four.String(): "shop/new-2", six.String(): "shop/new-3", "10.2.0.2": "shop/new-4"}
	if ips[0].String() != "10.1.0.1" {
		t.Fatalf("the ADD got %s", ips[0])
	}
	for _, e := range r.Entries {
		pod, taken := by[e.IP]
		if taken != (e.Outcome == "taken") || !strings.Contains(e.Error, pod) {
			t.Errorf("%s %s is %s: %q, want it taken by %q", e.Backend, e.IP, e.Outcome, e.Error, pod)
		}
	}
	after := w.Stores().Held()
	for place, holder := range before.Held() {
		if after[place] != holder {
			t.Errorf("%s: %q, and it was of %q", place, after[place], holder)
		}
	}
	report, err := w.Check(ctx)
	w.Must(err)
	if _, there := report.Allocations[six]; there {
		t.Errorf("%s is allocated again, and a pod shows it", six)
	}
	w.Must(w.Cluster.DeletePod(ctx, shop, "new-3"))
	want := map[string]string{"calico " + four.String(): "taken", "calico " + six.String(): "restored"} // of one ADD
	if diff := cmp.Diff(want, w.Restores(reap.ExitPartial, "--run="+id, "--ip="+six.String()).Outcomes()); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

// afterRelease returns a world in which a run has released everything, and the ID of the run.
func afterRelease(t *testing.T) (*kit.World, string) {
	t.Helper()
	w := kit.NewWorld(t)
	w.Undisturbed()
	return w, w.Journals()[0]
}

// blockAddresses returns the addresses of each family that Calico gave to a pod, according to a
// run's journal.
func blockAddresses(w *kit.World, id, pod string) (four, six netip.Addr) {
	w.Helper()
	for _, e := range w.Restores(reap.ExitDone, "--run="+id, "--dry-run").Entries {
		switch ip, err := netip.ParseAddr(e.IP); {
		case err != nil || e.Backend != "calico" || e.Owner.Pod != pod:
		case ip.Is4():
			four = ip
		default:
			six = ip
		}
	}
	return four, six
}
