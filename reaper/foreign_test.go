package reaper_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// releaseAll has the policy release whatever is in doubtful hands.
func releaseAll(p *policy.Policy) {
	p.Pods.Finished, p.Pods.Superseded, p.Pods.Unnamed = policy.Release, policy.Release, policy.Release
	p.Nodes.Unreachable = policy.Release
	p.GracePeriod, p.MinAge = &policy.Duration{}, &policy.Duration{}
}

// Promise 1, 2. Whoever else is gone, it is not a pod's.
func TestForeignEntryIsHeldWithItsWords(t *testing.T) {
	for _, tt := range []struct {
		name  string
		entry func(*reaper.Allocation)
		pods  []reaper.Pod
		want  finding
	}{
		{"its pod does not exist", func(*reaper.Allocation) {}, nil, finding{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
		{"its pod exists", func(*reaper.Allocation) {}, []reaper.Pod{showing(web, ip1)}, finding{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
		{"it names nobody", func(r *reaper.Allocation) { r.Owner = reaper.Owner{} }, nil, finding{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
		{"it holds no address", func(r *reaper.Allocation) { r.EmptyHandle, r.IP = true, netip.Addr{} }, nil,
			finding{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
		{"a run had begun to release it", func(r *reaper.Allocation) { r.Interrupted = true }, nil,
			finding{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
		{"it cannot be understood either", func(r *reaper.Allocation) { r.Unreadable = "no JSON" }, nil,
			finding{reaper.Held, reaper.Unreadable, "no JSON"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := webEntry()
			r.Foreign = "a tunnel"
			tt.entry(&r)
			s := scene{pools: []reaper.Pool{poolOf(r)}, pods: tt.pods, policy: releaseAll}
			equal(t, "verdict", found(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1, 2. The name is a guess: it protects where a pod has it, and says
// nothing where none does.
func TestGuessedOwnerProtectsAndNeverCondemns(t *testing.T) {
	guess := finding{reaper.Held, reaper.OwnerUnknown, "its handle does not say that it belongs to a pod"}
	inUse := finding{reaper.InUse, reaper.PodPresent, ""}
	for _, tt := range []struct {
		name          string
		entry         func(*reaper.Allocation)
		pods          []reaper.Pod
		sets          []reaper.StatefulSet
		hold, release finding
	}{
		{name: "no such pod", pods: []reaper.Pod{showing(other, ip2)}, hold: guess,
			release: finding{reaper.Suspected, reaper.PodAbsent, ""}},
		{name: "no such pod, and another one does not show its addresses", pods: []reaper.Pod{{Ref: other, AddressUnknown: true}},
			hold: guess, release: guess},
		{name: "another pod shows the address", pods: []reaper.Pod{showing(other, ip1)},
			hold:    finding{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
			release: finding{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"}},
		{name: "a pod of that name", pods: []reaper.Pod{{Ref: web}}, hold: inUse, release: inUse},
		{name: "a pod of that name that is finished", pods: []reaper.Pod{{Ref: web, Finished: true}}, hold: inUse, release: inUse},
		{name: "a pod of that name with another UID", entry: func(r *reaper.Allocation) { r.Owner.UID = "old" },
			pods: []reaper.Pod{{Ref: web, UID: "new"}}, hold: inUse, release: inUse},
		{name: "a pod of that name with another sandbox", entry: func(r *reaper.Allocation) { r.SandboxOwned = true },
			pods: []reaper.Pod{{Ref: web, Sandbox: "s2", Addresses: []netip.Addr{ip2}}}, hold: inUse, release: inUse},
		{name: "a pod that its StatefulSet brings back", entry: func(r *reaper.Allocation) { r.Owner.Pod.Name = "db-0" },
			sets:    []reaper.StatefulSet{{Namespace: "default", Name: "db", Replicas: 1}},
			hold:    finding{reaper.Held, reaper.Retained, "its StatefulSet brings the pod back"},
			release: finding{reaper.Held, reaper.Retained, "its StatefulSet brings the pod back"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := webEntry()
			r.Inferred = true
			if tt.entry != nil {
				tt.entry(&r)
			}
			for d, want := range map[policy.Disposition]finding{
				policy.Hold: tt.hold, policy.Release: tt.release, "": tt.hold, "nonsense": tt.hold,
			} {
				s := scene{pools: []reaper.Pool{poolOf(r)}, pods: tt.pods, sets: tt.sets}
				s.policy = func(p *policy.Policy) { p.Pods.Unnamed, p.Pods.Finished = d, d }
				equal(t, "verdict under "+string(d), found(s.judge(t, noon)[0]), want)
			}
		})
	}
}

// Promise 1. Web's entry is no orphan where other shows the address. An entry in
// another network that gives it to other would explain that, if it were sure.
func TestUncertainEntryIsNoClaim(t *testing.T) {
	protected := finding{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"}
	for _, tt := range []struct {
		name  string
		claim func(*reaper.Allocation)
		want  finding
	}{
		{"it is sure", func(*reaper.Allocation) {}, finding{reaper.Suspected, reaper.PodAbsent, ""}},
		{"it is not a pod's", func(r *reaper.Allocation) { r.Foreign = "nobody: it rests" }, protected},
		{"its pod is guessed", func(r *reaper.Allocation) { r.Inferred = true }, protected},
		{"it holds no address any more", func(r *reaper.Allocation) { r.EmptyHandle = true }, protected},
	} {
		t.Run(tt.name, func(t *testing.T) {
			claim := webEntry()
			claim.Owner.Pod = other
			tt.claim(&claim)
			here, there := poolOf(webEntry()), poolOf(claim)
			here.Network, there.Network, there.Name = "blue", "red", "there"
			s := scene{pools: []reaper.Pool{here, there}, pods: []reaper.Pod{showing(other, ip1)}}
			equal(t, "verdict", found(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1, 2. The name may be wrong, so that all pods are asked, and none may
// be mute.
func TestGuessedOwnerIsConfirmedByAllPods(t *testing.T) {
	r := entries(1)[0]
	r.Inferred = true
	for _, tt := range []struct {
		name string
		now  []reaper.Pod
		want error
	}{
		{"nothing changed", nil, nil},
		{"its pod is back", []reaper.Pod{{Ref: r.Owner.Pod}}, reaper.ErrReturned},
		{"its pod is back and finished", []reaper.Pod{{Ref: r.Owner.Pod, Finished: true}}, reaper.ErrReturned},
		{"another pod shows the address", []reaper.Pod{showing(other, r.IP)}, reaper.ErrReturned},
		{"another pod is mute", []reaper.Pod{{Ref: other, AddressUnknown: true}}, reaper.ErrKept},
	} {
		for _, due := range []int{1, 1000} {
			t.Run(fmt.Sprintf("%s, %d due", tt.name, due), func(t *testing.T) {
				h := newHearing(t, &backendtest.Pods{}, r)
				h.pods.Add(tt.now...)
				ws, errs := h.confirmer(due).Confirm(t.Context(), h.orphans)
				equal(t, "calls", h.pods.Calls(), []string{"list pods"})
				if tt.want == nil {
					if _, err := ws[0].Allocation(); errs[0] != nil || err != nil {
						t.Errorf("confirm: %v, %v, want a warrant", errs[0], err)
					}
					return
				}
				refused(t, ws[0], errs[0], tt.want)
			})
		}
	}
}

// Promise 4.
func TestGuessedOwnerIsRenewedByAllPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := entries(1)[0]
		r.Inferred = true
		h := newHearing(t, &backendtest.Pods{}, r)
		ws, _ := h.confirmer(1).Confirm(t.Context(), h.orphans)
		time.Sleep(reaper.Freshness + 1)
		h.pods.Calls()
		fresh, err := ws[0].Renew(t.Context())
		if _, stale := fresh.Allocation(); err != nil || stale != nil {
			t.Fatal(err, stale)
		}
		equal(t, "calls", h.pods.Calls(), []string{"list pods"})
		h.pods.OnCall(func(string) error { return errors.New("no answer") })
		again, err := fresh.Renew(t.Context())
		refused(t, again, err, reaper.ErrAgain)
	})
}
