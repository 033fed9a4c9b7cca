package reaper_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// sandboxScene is an entry of sandbox s1, and its pod, which shows sandbox s2 and
// another address. No sibling proves anything.
func sandboxScene() (reaper.Allocation, reaper.Pod) {
	r := webEntry()
	r.SandboxOwned = true
	return r, reaper.Pod{Ref: web, Sandbox: "s2", Addresses: []netip.Addr{ip2}}
}

// Promise 1, 2. Each case that is kept lacks one part of the proof.
func TestSandboxOfItsOwnEntryIsReplacedOnlyWithTheProof(t *testing.T) {
	kept := finding{reaper.InUse, reaper.PodPresent, ""}
	replaced := finding{reaper.Suspected, reaper.SandboxReplaced, "the pod has 10.0.0.2"}
	for _, tt := range []struct {
		name   string
		change func(*reaper.Allocation, *reaper.Pod)
		want   finding
	}{
		{"all is proved", func(*reaper.Allocation, *reaper.Pod) {}, replaced},
		{"the entry names no interface", func(r *reaper.Allocation, _ *reaper.Pod) { r.Owner.Interface = "" }, replaced},
		{"the pod shows the same sandbox", func(_ *reaper.Allocation, p *reaper.Pod) { p.Sandbox = "s1" }, kept},
		{"the pod shows no sandbox", func(_ *reaper.Allocation, p *reaper.Pod) { p.Sandbox = "" }, kept},
		{"the entry names no sandbox", func(r *reaper.Allocation, _ *reaper.Pod) { r.Owner.Sandbox = "" }, kept},
		{"the pod shows no address", func(_ *reaper.Allocation, p *reaper.Pod) { p.Addresses = nil }, kept},
		{"the pod does not show all that it should", func(_ *reaper.Allocation, p *reaper.Pod) { p.AddressUnknown = true }, kept},
		{"the pod shows this address too", func(_ *reaper.Allocation, p *reaper.Pod) { p.Addresses = []netip.Addr{ip2, ip1} }, kept},
		{"sandboxes may adopt entries of others", func(r *reaper.Allocation, _ *reaper.Pod) { r.SandboxOwned = false }, kept},
		{"another pod shows the address", func(r *reaper.Allocation, _ *reaper.Pod) { r.IP = netip.MustParseAddr("10.0.0.9") },
			finding{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, pod := sandboxScene()
			tt.change(&r, &pod)
			s := scene{pools: []reaper.Pool{poolOf(r)}, pods: []reaper.Pod{pod, showing(other, netip.MustParseAddr("10.0.0.9"))}}
			equal(t, "verdict", found(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1. A sibling says whose address it is only if it is sure.
func TestUncertainSiblingProvesNothing(t *testing.T) {
	for name, change := range map[string]func(*reaper.Allocation){
		"it is not a pod's":            func(r *reaper.Allocation) { r.Foreign = "nobody: it rests" },
		"its pod is guessed":           func(r *reaper.Allocation) { r.Inferred = true },
		"it holds no address any more": func(r *reaper.Allocation) { r.EmptyHandle = true },
	} {
		t.Run(name, func(t *testing.T) {
			older, newer, pod := supersededScene()
			change(&newer)
			s := scene{pools: []reaper.Pool{poolOf(older, newer)}, pods: []reaper.Pod{pod}}
			equal(t, "verdict", found(s.judge(t, noon)[0]), finding{reaper.InUse, reaper.PodPresent, ""})
		})
	}
}

func TestReplacedSandboxOfItsOwnEntryIsHeldWhereThePolicySaysSo(t *testing.T) {
	r, pod := sandboxScene()
	for _, d := range []policy.Disposition{policy.Hold, "", "nonsense"} {
		s := scene{pools: []reaper.Pool{poolOf(r)}, pods: []reaper.Pod{pod}}
		s.policy = func(p *policy.Policy) { p.Pods.Superseded = d }
		equal(t, "verdict under "+string(d), found(s.judge(t, noon)[0]),
			finding{reaper.Held, reaper.SandboxReplaced, "the pod has 10.0.0.2"})
	}
}

// Promise 1. While the ADD of a new sandbox is in flight, its pod still shows the
// old one. No ADD takes longer than 4 minutes, so that an entry that tells that
// it is older is of none.
func TestReplacedSandboxWaitsOutTheAddThatItsEntryMayBeOf(t *testing.T) {
	for _, tt := range []struct {
		name          string
		change        func(*reaper.Allocation)
		created       time.Time
		grace, minAge time.Duration
		want          time.Duration // after noon
	}{
		{"of unknown age", nil, time.Time{}, 0, 0, 4 * time.Minute},
		{"of unknown age, and a longer minAge", nil, time.Time{}, time.Minute, 6 * time.Minute, 6 * time.Minute},
		{"of unknown age, and a longer grace", nil, time.Time{}, 9 * time.Minute, 6 * time.Minute, 9 * time.Minute},
		{"as old as an ADD can be", nil, noon.Add(-4 * time.Minute), 0, 0, 0},
		{"long known, with a grace", nil, noon.Add(-time.Hour), time.Minute, 6 * time.Minute, time.Minute},
		{"a second younger", nil, noon.Add(-4*time.Minute + time.Second), 0, 0, time.Second},
		{"a second younger, with a grace", nil, noon.Add(-4*time.Minute + time.Second), time.Minute, 0, time.Minute},
		{"made at noon", nil, noon, 0, 0, 4 * time.Minute},
		{"made at noon, and a minAge", nil, noon, 0, 6 * time.Minute, 6 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, pod := sandboxScene()
			r.Created = tt.created
			s := scene{pools: []reaper.Pool{poolOf(r)}, pods: []reaper.Pod{pod}}
			s.policy = func(p *policy.Policy) {
				p.GracePeriod, p.MinAge = &policy.Duration{Duration: tt.grace}, &policy.Duration{Duration: tt.minAge}
			}
			s.ledger = s.seen(t, noon)
			if tt.want > 0 {
				if v := s.judge(t, noon.Add(tt.want-time.Second))[0]; v.Verdict == reaper.Orphaned {
					t.Errorf("a second before %v it is an orphan", tt.want)
				}
			}
			equal(t, "standing", s.judge(t, noon.Add(tt.want))[0].Verdict, reaper.Orphaned)
		})
	}
}

// Promise 1. An adopted entry can be older than the sandbox that has it.
func TestAgeSaysNothingWhereEntriesAreAdopted(t *testing.T) {
	older, newer, pod := supersededScene()
	older.Created = noon.Add(-24 * time.Hour)
	s := scene{pools: []reaper.Pool{poolOf(older, newer)}, pods: []reaper.Pod{pod}}
	s.policy = func(p *policy.Policy) {
		p.GracePeriod, p.MinAge = &policy.Duration{}, &policy.Duration{}
	}
	v := s.judge(t, noon)[0]
	equal(t, "verdict", found(v), finding{reaper.Suspected, reaper.SandboxReplaced, "the pod has 10.0.0.2"})
	equal(t, "due", v.Due, noon.Add(4*time.Minute))
}

// Promise 1, 4. What the second look has to find is the same proof.
func TestConfirmSeesTheSandboxAgain(t *testing.T) {
	r, pod := sandboxScene()
	r.Created = noon.Add(-time.Hour)
	silent, back, gone := pod, pod, reaper.Pod{}
	silent.Sandbox, back.Sandbox = "", "s1"
	for _, tt := range []struct {
		name string
		now  reaper.Pod
		want error
	}{
		{"the other sandbox", pod, nil},
		{"its pod is gone by now", gone, nil},
		{"this sandbox", back, reaper.ErrReturned},
		{"no sandbox", silent, reaper.ErrReturned},
		{"this address", showing(web, ip1), reaper.ErrReturned},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pods := &backendtest.Pods{}
			pods.Add(pod)
			h := newHearing(t, pods, r)
			if pods.Remove(web); tt.now.Ref == web {
				pods.Add(tt.now)
			}
			ws, errs := h.confirmer(1).Confirm(t.Context(), h.orphans)
			if tt.want != nil {
				refused(t, ws[0], errs[0], tt.want)
				return
			}
			if _, err := ws[0].Allocation(); errs[0] != nil || err != nil {
				t.Errorf("confirm: %v, %v, want a warrant", errs[0], err)
			}
		})
	}
}
