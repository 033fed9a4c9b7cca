package reaper_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// supersededSituation returns a pod that shows 10.0.0.2 on net1, its allocation of that
// address, and one of 10.0.0.1 by an older version of the plugin, which names no interface.
func supersededSituation() (older, newer reaper.Allocation, pod reaper.Pod) {
	older, newer = webAllocation(), webAllocation()
	older.Owner.Interface, older.NeverAdopted = "", true
	newer.Key, newer.IP, newer.Token, newer.Owner.Sandbox = "2", ip2, "t2", "s2"
	return older, newer, showing(web, ip2)
}

// Promise 1, 2. Each case that is kept lacks one part of the proof.
func TestSandboxIsReplacedOnlyWithTheProof(t *testing.T) {
	kept := decision{reaper.InUse, reaper.PodPresent, ""}
	for _, tt := range []struct {
		name   string
		change func(older, newer *reaper.Allocation, pod *reaper.Pod)
		want   decision
	}{
		{"all is proved", func(_, _ *reaper.Allocation, _ *reaper.Pod) {},
			decision{reaper.Suspected, reaper.SandboxReplaced, "the pod has 10.0.0.2"}},
		{"neither allocation names an interface, so either may be the older", func(_, newer *reaper.Allocation, _ *reaper.Pod) {
			newer.Owner.Interface, newer.NeverAdopted = "", true
		}, kept},
		{"both allocations name the interface, so either may be the older", func(older, _ *reaper.Allocation, _ *reaper.Pod) {
			older.Owner.Interface, older.NeverAdopted = "net1", false
		}, kept},
		{"a later sandbox may adopt the allocation", func(older, _ *reaper.Allocation, _ *reaper.Pod) { older.NeverAdopted = false }, kept},
		{"both are of one sandbox", func(_, newer *reaper.Allocation, _ *reaper.Pod) { newer.Owner.Sandbox = "s1" }, kept},
		{"this allocation names no sandbox", func(older, _ *reaper.Allocation, _ *reaper.Pod) { older.Owner.Sandbox = "" }, kept},
		{"the other allocation names no sandbox", func(_, newer *reaper.Allocation, _ *reaper.Pod) { newer.Owner.Sandbox = "" }, kept},
		{"the pod shows both addresses", func(_, _ *reaper.Allocation, pod *reaper.Pod) {
			*pod = showing(web, ip1, ip2)
		}, kept},
		{"the pod shows the other address, but on no interface", func(_, _ *reaper.Allocation, pod *reaper.Pod) {
			pod.Interfaces = nil
		}, kept},
		{"the pod shows the other address on another interface", func(_, _ *reaper.Allocation, pod *reaper.Pod) {
			pod.Interfaces = on("net2", ip2)
		}, kept},
		{"the other allocation is for another interface", func(_, newer *reaper.Allocation, _ *reaper.Pod) {
			newer.Owner.Interface = "net2"
		}, kept},
		{"the other allocation is another pod's", func(_, newer *reaper.Allocation, _ *reaper.Pod) {
			newer.Owner.Pod = other
		}, kept},
		{"the other allocation cannot be read", func(_, newer *reaper.Allocation, _ *reaper.Pod) {
			newer.Unreadable = "no JSON"
		}, kept},
		{"the other allocation is for the same address", func(older, newer *reaper.Allocation, _ *reaper.Pod) {
			newer.IP = older.IP
		}, kept},
		{"the pod's status cannot be read as a whole", func(_, _ *reaper.Allocation, pod *reaper.Pod) {
			pod.AddressUnknown = true
		}, kept},
		{"the pod leaves out a network, which may have this address", func(_, _ *reaper.Allocation, pod *reaper.Pod) {
			pod.LeavesOut = true
		}, kept},
		{"the pod shows another address, which this pool does not hold", func(_, _ *reaper.Allocation, pod *reaper.Pod) {
			*pod = showing(web, netip.MustParseAddr("10.0.0.3"))
		}, kept},
	} {
		t.Run(tt.name, func(t *testing.T) {
			older, newer, pod := supersededSituation()
			tt.change(&older, &newer, &pod)
			decisions := situation{pools: []reaper.Pool{poolOf(older, newer)}, pods: []reaper.Pod{pod}}.judge(t, noon)
			equal(t, "verdict", decisionOf(decisions[0]), tt.want)
		})
	}
}

// Promise 1, 2. The pod owns all its annotations. If the store has the address of the pod's
// status for one of the sandboxes, that one is its sandbox.
func TestStatusTellsWhichOfTwoSandboxesThePodHas(t *testing.T) {
	kept, replaced := decision{reaper.InUse, reaper.PodPresent, ""}, decision{reaper.Suspected, reaper.SandboxReplaced, "the pod has 10.0.0.2"}
	for _, tt := range []struct {
		name    string
		sandbox string // that has the address of the status
		change  func(primary *reaper.Allocation, pod *reaper.Pod)
		want    decision
	}{
		{"the other", "s2", nil, replaced},
		{"this one, and the pod claims the address of the other", "s1", nil, kept},
		{"a third one", "s3", nil, kept},
		{"the pod only claims that address", "s2", func(_ *reaper.Allocation, pod *reaper.Pod) { pod.InStatus = 0 }, kept},
		{"the address is another pod's", "s2", func(primary *reaper.Allocation, _ *reaper.Pod) { primary.Owner.Pod = other }, kept},
		{"sandboxes adopt the allocations of that store", "s2", func(primary *reaper.Allocation, _ *reaper.Pod) { primary.SandboxOwned = false }, kept},
	} {
		t.Run(tt.name, func(t *testing.T) {
			older, newer, pod := supersededSituation()
			older.Owner.Interface, older.NeverAdopted = "net1", false // no version tells them apart
			primary := webAllocation()
			primary.Key, primary.IP, primary.Token, primary.SandboxOwned = "9", netip.MustParseAddr("10.9.0.9"), "t9", true
			primary.Owner.Sandbox = tt.sandbox
			pod.Addresses, pod.InStatus = append([]netip.Addr{primary.IP}, pod.Addresses...), 1
			if tt.change != nil {
				tt.change(&primary, &pod)
			}
			inv := inventory(t, fixedStore{poolOf(older, newer)}, scriptedStore{"store", []step{{pool: poolOf(primary)}}})
			decisions := reaper.Judge(noon, policy.Default(), inv, censusOf(pod), reaper.Ledger{})
			equal(t, "verdict", decisionOf(decisions[0]), tt.want)
		})
	}
}

// Promise 1.
func TestAllocationInAnotherPoolProvesNothing(t *testing.T) {
	older, newer, pod := supersededSituation()
	there := poolOf(newer)
	there.Name = "there"
	s := situation{pools: []reaper.Pool{poolOf(older), there}, pods: []reaper.Pod{pod}}
	for _, d := range s.judge(t, noon) {
		equal(t, "verdict", decisionOf(d), decision{reaper.InUse, reaper.PodPresent, ""})
	}
}

func TestReplacedSandboxIsHeldByThePolicy(t *testing.T) {
	older, newer, pod := supersededSituation()
	for _, d := range []policy.Disposition{policy.Hold, "", "nonsense"} {
		s := situation{pools: []reaper.Pool{poolOf(older, newer)}, pods: []reaper.Pod{pod}}
		s.policy = func(p *policy.Policy) { p.Pods.Superseded = d }
		equal(t, "verdict under "+string(d), decisionOf(s.judge(t, noon)[0]),
			decision{reaper.Held, reaper.SandboxReplaced, "the pod has 10.0.0.2"})
	}
}

// Promise 1. While the ADD of a new sandbox is in flight, the pod still shows the old
// address, and the new allocation looks replaced.
func TestReplacedSandboxWaitsOutAnAddInFlight(t *testing.T) {
	for _, tt := range []struct {
		name          string
		grace, minAge time.Duration
		want          time.Duration
	}{
		{"no grace and no age", 0, 0, 4 * time.Minute},
		{"a short grace", time.Minute, time.Minute, 4 * time.Minute},
		{"a longer age", time.Minute, 6 * time.Minute, 6 * time.Minute},
		{"a longer grace", 10 * time.Minute, 6 * time.Minute, 10 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			older, newer, pod := supersededSituation()
			s := situation{pools: []reaper.Pool{poolOf(older, newer)}, pods: []reaper.Pod{pod}}
			s.policy = func(p *policy.Policy) {
				p.GracePeriod, p.MinAge = &policy.Duration{Duration: tt.grace}, &policy.Duration{Duration: tt.minAge}
			}
			s.ledger = s.seen(t, noon)
			for at, want := range map[time.Time]reaper.Verdict{
				noon: reaper.Suspected,
				noon.Add(tt.want - early(tt.grace) - time.Second): reaper.Suspected,
				noon.Add(tt.want):                  reaper.Orphaned,
				noon.Add(tt.want + 24*7*time.Hour): reaper.Orphaned,
			} {
				equal(t, "verdict", s.judge(t, at)[0].Verdict, want)
			}
		})
	}
}

// Promise 1.
func TestReplacedSandboxIsForgottenOnceThePodShowsItsAddress(t *testing.T) {
	older, newer, pod := supersededSituation()
	s := situation{pools: []reaper.Pool{poolOf(older, newer)}, pods: []reaper.Pod{pod}}
	s.ledger = s.seen(t, noon)
	s.pods = []reaper.Pod{showing(web, ip1)} // it was that of the ADD in flight
	s.ledger = s.seen(t, noon.Add(time.Minute))
	s.pods = []reaper.Pod{pod}
	equal(t, "verdict", s.judge(t, noon.Add(time.Hour))[0].Verdict, reaper.Suspected)
}
