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

// releaseAll sets every choice of the policy to release, without a grace period.
func releaseAll(p *policy.Policy) {
	p.Pods.Finished, p.Pods.Superseded, p.Pods.Unnamed = policy.Release, policy.Release, policy.Release
	p.Nodes.Unreachable = policy.Release
	p.GracePeriod, p.MinAge = &policy.Duration{}, &policy.Duration{}
}

// Promise 1, 2. The address is not for a pod, so the pods do not matter.
func TestForeignAllocationIsHeldWithItsPurpose(t *testing.T) {
	for _, tt := range []struct {
		name  string
		entry func(*reaper.Allocation)
		pods  []reaper.Pod
		want  decision
	}{
		{"its pod does not exist", func(*reaper.Allocation) {}, nil, decision{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
		{"its pod exists", func(*reaper.Allocation) {}, []reaper.Pod{showing(web, ip1)}, decision{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
		{"it names no owner", func(a *reaper.Allocation) { a.Owner = reaper.Owner{} }, nil, decision{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
		{"it holds no address", func(a *reaper.Allocation) { a.EmptyHandle, a.IP = true, netip.Addr{} }, nil,
			decision{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
		{"a run had begun to release it", func(a *reaper.Allocation) { a.Interrupted = true }, nil,
			decision{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
		{"it cannot be understood either", func(a *reaper.Allocation) { a.Unreadable = "no JSON" }, nil,
			decision{reaper.Held, reaper.Unreadable, "no JSON"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.Foreign = "a tunnel"
			tt.entry(&a)
			s := situation{pools: []reaper.Pool{poolOf(a)}, pods: tt.pods, policy: releaseAll}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1, 2. The backend derived the name. It keeps the address if such a pod
// exists. It proves nothing if no such pod exists.
func TestInferredOwnerOnlyEverKeeps(t *testing.T) {
	inferred := decision{reaper.Held, reaper.OwnerUnknown, "its handle does not say that it belongs to a pod"}
	inUse := decision{reaper.InUse, reaper.PodPresent, ""}
	for _, tt := range []struct {
		name          string
		entry         func(*reaper.Allocation)
		pods          []reaper.Pod
		sets          []reaper.StatefulSet
		hold, release decision
	}{
		{name: "no such pod", pods: []reaper.Pod{showing(other, ip2)}, hold: inferred,
			release: decision{reaper.Suspected, reaper.PodAbsent, ""}},
		{name: "no such pod, and another one does not show its addresses", pods: []reaper.Pod{{Ref: other, AddressUnknown: true}},
			hold: inferred, release: inferred},
		{name: "another pod shows the address", pods: []reaper.Pod{showing(other, ip1)},
			hold:    decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
			release: decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"}},
		{name: "a pod of that name", pods: []reaper.Pod{{Ref: web}}, hold: inUse, release: inUse},
		{name: "a pod of that name that is finished", pods: []reaper.Pod{{Ref: web, Finished: true}}, hold: inUse, release: inUse},
		{name: "a pod of that name with another UID", entry: func(a *reaper.Allocation) { a.Owner.UID = "old" },
			pods: []reaper.Pod{{Ref: web, UID: "new"}}, hold: inUse, release: inUse},
		{name: "a pod of that name with another sandbox", entry: func(a *reaper.Allocation) { a.SandboxOwned = true },
			pods: []reaper.Pod{{Ref: web, Sandbox: "s2", Addresses: []netip.Addr{ip2}}}, hold: inUse, release: inUse},
		{name: "a pod that its StatefulSet brings back", entry: func(a *reaper.Allocation) { a.Owner.Pod.Name = "db-0" },
			sets:    []reaper.StatefulSet{{Namespace: "default", Name: "db", Replicas: 1}},
			hold:    decision{reaper.Held, reaper.Retained, "its StatefulSet brings the pod back"},
			release: decision{reaper.Held, reaper.Retained, "its StatefulSet brings the pod back"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.Inferred = true
			if tt.entry != nil {
				tt.entry(&a)
			}
			for d, want := range map[policy.Disposition]decision{
				policy.Hold: tt.hold, policy.Release: tt.release, "": tt.hold, "nonsense": tt.hold,
			} {
				s := situation{pools: []reaper.Pool{poolOf(a)}, pods: tt.pods, sets: tt.sets}
				s.policy = func(p *policy.Policy) { p.Pods.Unnamed, p.Pods.Finished = d, d }
				equal(t, "verdict under "+string(d), decisionOf(s.judge(t, noon)[0]), want)
			}
		})
	}
}

// Promise 1. The pod other shows the address of web's allocation. An allocation of
// other in another network would explain that, but only if it is certain.
func TestUncertainAllocationProvesNoOwner(t *testing.T) {
	inUse := decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"}
	for _, tt := range []struct {
		name  string
		claim func(*reaper.Allocation)
		want  decision
	}{
		{"it is sure", func(*reaper.Allocation) {}, decision{reaper.Suspected, reaper.PodAbsent, ""}},
		{"it is not a pod's", func(a *reaper.Allocation) { a.Foreign = "a tunnel" }, inUse},
		{"its pod is inferred", func(a *reaper.Allocation) { a.Inferred = true }, inUse},
		{"it holds no address any more", func(a *reaper.Allocation) { a.EmptyHandle = true }, inUse},
	} {
		t.Run(tt.name, func(t *testing.T) {
			claim := webAllocation()
			claim.Owner.Pod = other
			tt.claim(&claim)
			here, there := poolOf(webAllocation()), poolOf(claim)
			here.Network, there.Network, there.Name = "blue", "red", "there"
			s := situation{pools: []reaper.Pool{here, there}, pods: []reaper.Pod{showing(other, ip1)}}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1, 2. The derived name may be wrong. So the second look lists all pods, and
// each of them must show its addresses.
func TestInferredOwnerIsConfirmedByAListOfPods(t *testing.T) {
	a := allocations(1)[0]
	a.Inferred = true
	for _, tt := range []struct {
		name string
		now  []reaper.Pod
		want error
	}{
		{"nothing changed", nil, nil},
		{"its pod is back", []reaper.Pod{{Ref: a.Owner.Pod}}, reaper.ErrReturned},
		{"its pod is back and finished", []reaper.Pod{{Ref: a.Owner.Pod, Finished: true}}, reaper.ErrReturned},
		{"another pod shows the address", []reaper.Pod{showing(other, a.IP)}, reaper.ErrReturned},
		{"another pod does not show its addresses", []reaper.Pod{{Ref: other, AddressUnknown: true}}, reaper.ErrKept},
	} {
		for _, due := range []int{1, 1000} {
			t.Run(fmt.Sprintf("%s, %d due", tt.name, due), func(t *testing.T) {
				look := newSecondLook(t, &backendtest.Pods{}, a)
				look.pods.Add(tt.now...)
				ws, errs := look.confirmer(due).Confirm(t.Context(), look.orphans)
				equal(t, "calls", look.pods.Calls(), []string{"list pods"})
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
func TestInferredOwnerIsRenewedByAListOfPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := allocations(1)[0]
		a.Inferred = true
		look := newSecondLook(t, &backendtest.Pods{}, a)
		ws, _ := look.confirmer(1).Confirm(t.Context(), look.orphans)
		time.Sleep(reaper.Freshness + 1)
		look.pods.Calls()
		fresh, err := ws[0].Renew(t.Context())
		if _, stale := fresh.Allocation(); err != nil || stale != nil {
			t.Fatal(err, stale)
		}
		equal(t, "calls", look.pods.Calls(), []string{"list pods"})
		look.pods.OnCall(func(string) error { return errors.New("no answer") })
		again, err := fresh.Renew(t.Context())
		refused(t, again, err, reaper.ErrAgain)
	})
}
