package run_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// figuresOf are those that a report has to make. It is said here a second time what
// they are, by the JSON that users see.
func (f *metricsFixture) figuresOf(r *reap.Report, exitCode int) figures {
	f.Helper()
	want := figures{
		"ip_reaper_run_timestamp_seconds{}":                            unix(r.Run.FinishedAt),
		"ip_reaper_run_duration_seconds{}":                             r.Run.FinishedAt.Sub(r.Run.StartedAt).Seconds(),
		"ip_reaper_run_exit_code{}":                                    float64(exitCode),
		"ip_reaper_dry_run{}":                                          map[bool]float64{true: 1}[r.Run.DryRun],
		fmt.Sprintf("ip_reaper_build_info{version=%q}", r.Run.Version): 1,
	}
	for _, b := range r.Backends {
		for _, status := range []string{"ok", "partial", "failed", "skipped"} {
			want[fmt.Sprintf("ip_reaper_backend_status{backend=%q,status=%q}", b.Name, status)] = map[bool]float64{true: 1}[b.Status == status]
		}
		if b.Status == "failed" || b.Status == "skipped" {
			continue // promise 11
		}
		for name, figure := range map[string]int{
			"released{backend=%q}": b.Released, "changed{backend=%q}": b.Changed, "failed{backend=%q}": b.Failed,
		} {
			want["ip_reaper_allocations_"+fmt.Sprintf(name, b.Name)] = float64(figure)
		}
		if exitCode == reap.ExitError || exitCode == reap.ExitSignal {
			continue // in these tests, there was no census
		}
		want[fmt.Sprintf("ip_reaper_allocations_planned{backend=%q}", b.Name)] = float64(b.Planned)
		for decision, figure := range map[string]int{"inUse": b.InUse, "held": b.Held, "suspected": b.Suspected, "orphan": b.Planned} {
			want[fmt.Sprintf("ip_reaper_allocations{backend=%q,verdict=%q}", b.Name, decision)] = float64(figure)
		}
	}
	for _, p := range r.Pools {
		labels := fmt.Sprintf("{backend=%q,pool=%q,range=%q}", p.Backend, p.Name, p.Range)
		capacity, err := p.Capacity.Float64()
		f.must(err)
		want["ip_reaper_pool_capacity"+labels] = capacity
		want["ip_reaper_pool_allocated"+labels] = float64(p.AllocatedAfter)
		want["ip_reaper_pool_protected"+labels] = 0
		if p.ProtectedBy != "" {
			want["ip_reaper_pool_protected"+labels] = 1
		}
		if r.Run.DryRun {
			want["ip_reaper_pool_allocated"+labels] = float64(p.AllocatedBefore)
		}
	}
	if r.Leaked != nil {
		for status, figure := range map[string]int{
			"due": r.Leaked.Due, "waiting": r.Leaked.Waiting, "held": r.Leaked.Held, "released": r.Leaked.Released,
		} {
			want[fmt.Sprintf("ip_reaper_leaked{status=%q}", status)] = float64(figure)
		}
	}
	for _, n := range r.Networks { // all are open, and their capacity is known
		labels := fmt.Sprintf("{backend=%q,network=%q,range=%q}", n.Backend, n.Name, n.Range)
		capacity, err := n.Capacity.Float64()
		f.must(err)
		free, err := n.Free.Float64()
		f.must(err)
		want["ip_reaper_network_capacity"+labels], want["ip_reaper_network_free"+labels] = capacity, free
		want["ip_reaper_network_allocated"+labels] = float64(n.Used)
		if r.Leaked != nil {
			want["ip_reaper_network_leaked"+labels] = float64(n.Leaked)
		}
	}
	return want
}

// unix is a time as figures have it.
func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// wantSuccess compares when the last success was; the zero time is never.
func (f *metricsFixture) wantSuccess(want time.Time, group ...string) {
	f.Helper()
	_, got := f.gateway.scrape(group...)
	if want.IsZero() != (got == 0) || !want.IsZero() && got != unix(want) {
		f.Errorf("the last success was at %v, want %v", got, want)
	}
}

// From the leak to its release, with every store that there is.
func TestFiguresAreThoseOfTheReport(t *testing.T) {
	f := newMetricsFixture(t)
	store, err := calico.OnKubernetes(t.Context(), f.Cluster)
	f.must(err)
	f.must(store.CreateNode(t.Context(), "worker-1"))
	f.must(store.ApplyPool(t.Context(), "four", netip.MustParsePrefix("10.30.0.0/24"), 26))
	_, err = store.Add(t.Context(), calico.NewSandbox(shop, "web-0", "worker-1"))
	f.must(err)
	f.live("web-1")
	f.leak("web-2")
	f.leak("web-3")

	suspects := f.reap(reap.ExitDone, header+"gracePeriod: 10m\n")
	if n := suspects.Summary.Suspected; n != 5 || len(suspects.Pools) != 2 {
		t.Fatalf("%d suspected in %d pools, want 5 in 2: %+v", n, len(suspects.Pools), suspects)
	}
	f.gateway.want(f.figuresOf(suspects, reap.ExitDone))
	f.wantSuccess(suspects.Run.FinishedAt)

	releases := f.reap(reap.ExitDone, header+"gracePeriod: 0s\n")
	if n := releases.Summary.Released; n != 5 {
		t.Fatalf("%d released, want 5: %+v", n, releases)
	}
	f.gateway.want(f.figuresOf(releases, reap.ExitDone))
	f.wantSuccess(releases.Run.FinishedAt)
}

// Operators watch dry runs first. What a dry run would release is still there.
func TestDryRunPushes(t *testing.T) {
	f := newMetricsFixture(t)
	f.live("web-0")
	f.leak("web-1")
	report := f.reap(reap.ExitDone, atOnce, "--dry-run")
	if p := report.Pools; len(p) != 1 || p[0].AllocatedBefore != 2 || p[0].AllocatedAfter != 1 {
		t.Fatalf("pools %+v, want one that has 2 and would have 1", p)
	}
	f.gateway.want(f.figuresOf(report, reap.ExitDone))
	f.wantSuccess(report.Run.FinishedAt)
}
