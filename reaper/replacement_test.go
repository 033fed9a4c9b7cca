package reaper_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// sandboxSituation returns an allocation of sandbox s1, one that sandbox s2 got a minute
// later, and their pod, which shows sandbox s2 and its address.
func sandboxSituation() (a, later reaper.Allocation, pod reaper.Pod) {
	a, later, pod = laterSandboxSituation()
	pod.Sandbox = "s2"
	return a, later, pod
}

// Promise 1, 2. Each case that is kept lacks one part of the proof.
func TestSandboxWithItsOwnAllocationIsReplacedOnlyWithTheProof(t *testing.T) {
	kept := decision{reaper.InUse, reaper.PodPresent, ""}
	replaced := decision{reaper.Suspected, reaper.SandboxReplaced, "the pod has 10.0.0.2"}
	type parts struct {
		a, later *reaper.Allocation
		pod      *reaper.Pod
	}
	untimed := func(p parts) { p.a.Created = time.Time{} }
	for _, tt := range []struct {
		name   string
		change func(parts)
		want   decision
	}{
		{"all is proved", func(parts) {}, replaced},
		{"the allocation names no interface", func(p parts) { p.a.Owner.Interface = "" }, replaced},
		{"the pod shows no address of the store", func(p parts) { p.pod.Addresses = []netip.Addr{netip.MustParseAddr("10.0.0.3")} }, replaced},
		{"the pod claims a sandbox that the store does not have", func(p parts) {
			p.pod.Sandbox, p.pod.Addresses = "forged", []netip.Addr{netip.MustParseAddr("10.0.0.3")}
		}, kept},
		{"the pod claims a sandbox of another pod", func(p parts) { p.later.Owner.Pod = other }, kept},
		{"the pod claims its sandbox before this one", func(p parts) { p.later.Created = p.a.Created.Add(-time.Minute) }, kept},
		{"the later sandbox is of another node, whose clock may be wrong", func(p parts) { p.later.Owner.Node = "node-2" }, kept},
		{"the later allocation is of the future", func(p parts) { p.later.Created = noon.Add(time.Second) }, kept},
		{"the later allocation cannot be read", func(p parts) { p.later.Unreadable = "no JSON" }, kept},
		{"the store does not say when, and the pod claims the sandbox", untimed, kept},
		{"the store does not say when, and the status has an address of the sandbox", func(p parts) {
			untimed(p)
			p.pod.InStatus = 1
		}, replaced},
		{"the pod shows the same sandbox", func(p parts) { p.pod.Sandbox = "s1" }, kept},
		{"the allocation names no sandbox", func(p parts) { p.a.Owner.Sandbox = "" }, kept},
		{"the pod shows no address", func(p parts) { p.pod.Addresses = nil }, kept},
		{"the pod does not show all that it should", func(p parts) { p.pod.AddressUnknown = true }, kept},
		{"the pod shows this address too", func(p parts) { p.pod.Addresses = []netip.Addr{ip2, ip1} }, kept},
		{"sandboxes may adopt allocations of others", func(p parts) { p.a.SandboxOwned = false }, kept},
		{"another pod shows the address", func(p parts) { p.a.IP = netip.MustParseAddr("10.0.0.9") },
			decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, later, pod := sandboxSituation()
			tt.change(parts{&a, &later, &pod})
			s := situation{pools: []reaper.Pool{poolOf(a, later)}, pods: []reaper.Pod{pod, showing(other, netip.MustParseAddr("10.0.0.9"))}}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1. The status has an address that this sandbox got on another interface, so it
// is the pod's sandbox, and the annotations are false or late.
func TestSandboxOfAStatusAddressIsNotReplaced(t *testing.T) {
	a, later, pod := sandboxSituation()
	sibling := a
	sibling.Key, sibling.IP, sibling.Token = "3", netip.MustParseAddr("10.0.0.3"), "t3"
	pod.Addresses, pod.InStatus = []netip.Addr{sibling.IP, ip2}, 1
	s := situation{pools: []reaper.Pool{poolOf(a, later, sibling)}, pods: []reaper.Pod{pod}}
	equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), decision{reaper.InUse, reaper.PodPresent, ""})
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
	a, later, pod := sandboxSituation()
	for _, d := range []policy.Disposition{policy.Hold, "", "nonsense"} {
		s := situation{pools: []reaper.Pool{poolOf(a, later)}, pods: []reaper.Pod{pod}}
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
			a, later, pod := sandboxSituation()
			a.Created, later.Created, pod.InStatus = tt.created, time.Time{}, 1
			s := situation{pools: []reaper.Pool{poolOf(a, later)}, pods: []reaper.Pod{pod}}
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
	a, later, pod := sandboxSituation()
	back, forged, gone := pod, pod, reaper.Pod{}
	back.Sandbox, forged.Sandbox, forged.Addresses = "s1", "forged", []netip.Addr{netip.MustParseAddr("10.0.0.3")}
	for _, tt := range []struct {
		name string
		now  reaper.Pod
		want error
	}{
		{"the other sandbox", pod, nil},
		{"its pod is gone by now", gone, nil},
		{"this sandbox", back, reaper.ErrReturned},
		{"a sandbox that the store does not have", forged, reaper.ErrReturned},
		{"this address", showing(web, ip1), reaper.ErrReturned},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pods := &backendtest.Pods{}
			pods.Add(pod)
			look := newSecondLookOf(t, pods, 1, a, later)
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
