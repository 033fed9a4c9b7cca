package reaper_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// sandboxSituation returns an allocation of sandbox s1, and its pod, which shows
// sandbox s2 and another address. No other allocation proves anything.
func sandboxSituation() (reaper.Allocation, reaper.Pod) {
	a := webAllocation()
	a.SandboxOwned = true
	return a, reaper.Pod{Ref: web, Sandbox: "s2", Addresses: []netip.Addr{ip2}}
}

// Promise 1, 2. Each case that is kept lacks one part of the proof.
func TestSandboxWithItsOwnAllocationIsReplacedOnlyWithTheProof(t *testing.T) {
	kept := decision{reaper.InUse, reaper.PodPresent, ""}
	replaced := decision{reaper.Suspected, reaper.SandboxReplaced, "the pod has 10.0.0.2"}
	for _, tt := range []struct {
		name   string
		change func(*reaper.Allocation, *reaper.Pod)
		want   decision
	}{
		{"all is proved", func(*reaper.Allocation, *reaper.Pod) {}, replaced},
		{"the allocation names no interface", func(a *reaper.Allocation, _ *reaper.Pod) { a.Owner.Interface = "" }, replaced},
		{"the pod shows the same sandbox", func(_ *reaper.Allocation, p *reaper.Pod) { p.Sandbox = "s1" }, kept},
		{"the pod shows no sandbox", func(_ *reaper.Allocation, p *reaper.Pod) { p.Sandbox = "" }, kept},
		{"the allocation names no sandbox", func(a *reaper.Allocation, _ *reaper.Pod) { a.Owner.Sandbox = "" }, kept},
		{"the pod shows no address", func(_ *reaper.Allocation, p *reaper.Pod) { p.Addresses = nil }, kept},
		{"the pod does not show all that it should", func(_ *reaper.Allocation, p *reaper.Pod) { p.AddressUnknown = true }, kept},
		{"the pod shows this address too", func(_ *reaper.Allocation, p *reaper.Pod) { p.Addresses = []netip.Addr{ip2, ip1} }, kept},
		{"sandboxes may adopt allocations of others", func(a *reaper.Allocation, _ *reaper.Pod) { a.SandboxOwned = false }, kept},
		{"another pod shows the address", func(a *reaper.Allocation, _ *reaper.Pod) { a.IP = netip.MustParseAddr("10.0.0.9") },
			decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, pod := sandboxSituation()
			tt.change(&a, &pod)
			s := situation{pools: []reaper.Pool{poolOf(a)}, pods: []reaper.Pod{pod, showing(other, netip.MustParseAddr("10.0.0.9"))}}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1. Another allocation of the pod proves an address only if its owner is
// certain.
func TestUncertainSiblingProvesNothing(t *testing.T) {
	for name, change := range map[string]func(*reaper.Allocation){
		"it is not a pod's":            func(a *reaper.Allocation) { a.Foreign = "a tunnel" },
		"its pod is inferred":          func(a *reaper.Allocation) { a.Inferred = true },
		"it holds no address any more": func(a *reaper.Allocation) { a.EmptyHandle = true },
	} {
		t.Run(name, func(t *testing.T) {
			older, newer, pod := supersededSituation()
			change(&newer)
			s := situation{pools: []reaper.Pool{poolOf(older, newer)}, pods: []reaper.Pod{pod}}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), decision{reaper.InUse, reaper.PodPresent, ""})
		})
	}
}

func TestReplacedSandboxWithItsOwnAllocationIsHeldByThePolicy(t *testing.T) {
	a, pod := sandboxSituation()
	for _, d := range []policy.Disposition{policy.Hold, "", "nonsense"} {
		s := situation{pools: []reaper.Pool{poolOf(a)}, pods: []reaper.Pod{pod}}
		s.policy = func(p *policy.Policy) { p.Pods.Superseded = d }
		equal(t, "verdict under "+string(d), decisionOf(s.judge(t, noon)[0]),
			decision{reaper.Held, reaper.SandboxReplaced, "the pod has 10.0.0.2"})
	}
}

// Promise 1. While the ADD of a new sandbox is in flight, its pod still shows the old
// one. No ADD takes longer than 4 minutes, so an older allocation is not that of the
// ADD in flight.
func TestReplacedSandboxWaitsUntilItsAddMustBeOver(t *testing.T) {
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
			a, pod := sandboxSituation()
			a.Created = tt.created
			s := situation{pools: []reaper.Pool{poolOf(a)}, pods: []reaper.Pod{pod}}
			s.policy = func(p *policy.Policy) {
				p.GracePeriod, p.MinAge = &policy.Duration{Duration: tt.grace}, &policy.Duration{Duration: tt.minAge}
			}
			s.ledger = s.seen(t, noon)
			if tt.want > 0 {
				if d := s.judge(t, noon.Add(tt.want-early(tt.grace)-time.Second))[0]; d.Verdict == reaper.Orphaned {
					t.Errorf("a second before %v it is an orphan", tt.want)
				}
			}
			equal(t, "verdict", s.judge(t, noon.Add(tt.want))[0].Verdict, reaper.Orphaned)
		})
	}
}

// Promise 1. An adopted allocation can be older than the sandbox that has it.
func TestAgeOfAnAdoptedAllocationProvesNothing(t *testing.T) {
	older, newer, pod := supersededSituation()
	older.Created = noon.Add(-24 * time.Hour)
	s := situation{pools: []reaper.Pool{poolOf(older, newer)}, pods: []reaper.Pod{pod}}
	s.policy = func(p *policy.Policy) {
		p.GracePeriod, p.MinAge = &policy.Duration{}, &policy.Duration{}
	}
	d := s.judge(t, noon)[0]
	equal(t, "verdict", decisionOf(d), decision{reaper.Suspected, reaper.SandboxReplaced, "the pod has 10.0.0.2"})
	equal(t, "due", d.Due, noon.Add(4*time.Minute))
}

// Promise 1, 4. The second look needs the same proof.
func TestConfirmSeesTheSandboxAgain(t *testing.T) {
	a, pod := sandboxSituation()
	a.Created = noon.Add(-time.Hour)
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
			look := newSecondLook(t, pods, a)
			if pods.Remove(web); tt.now.Ref == web {
				pods.Add(tt.now)
			}
			ws, errs := look.confirmer(1).Confirm(t.Context(), look.orphans)
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
