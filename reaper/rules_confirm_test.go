package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 1, 2, 4. The second look asks the rules again, with the StatefulSets and nodes of the
// first one. Where a pod that the store does not name may matter, it lists all pods.
func TestSecondLookAsksTheRulesAgain(t *testing.T) {
	add := func(ps ...census.Pod) func(*backendtest.Pods) {
		return func(p *backendtest.Pods) { p.Add(ps...) }
	}
	back := func(pod census.Pod) func(*backendtest.Pods) { // in place of web
		return func(p *backendtest.Pods) {
			p.Remove(web)
			p.Add(pod)
		}
	}
	silent := func(kind string) func(*backendtest.Pods) {
		return func(p *backendtest.Pods) {
			p.OnCall(func(call string) error {
				if kind == "" || call == kind {
					return errors.New("no answer")
				}
				return nil
			})
		}
	}
	replace := func(situations func() (older, newer ipam.Allocation, pod census.Pod)) change {
		return func(s *situation) {
			older, newer, pod := situations()
			s.pools, s.pods = []ipam.Pool{poolOf(older, newer)}, []census.Pod{pod}
		}
	}
	handle := entry(func(a *ipam.Allocation) { *a = emptyHandle() })
	named := all(handle, owner(ipam.Owner{Pod: web, Sandbox: "s1"}))
	_, _, s2 := sandboxSituation()
	s1, forged := s2, s2
	s1.Sandbox, forged.Sandbox, forged.Addresses = "s1", "forged", nil
	gone := all(func(s *situation) { s.pools = []ipam.Pool{poolOf(lease())} }, sandboxes("s2"))
	goneOf := all(gone, entry(func(a *ipam.Allocation) { a.Owner.Pod = web }))
	moved := func(s *situation) {
		a, pod := movedSituation()
		s.pools, s.pods = []ipam.Pool{poolOf(a)}, []census.Pod{pod}
		s.nodes = []census.Node{{Name: "n1", OutOfService: true}, ready("n2")}
	}
	ofUID := func(uid string) change { return entry(func(a *ipam.Allocation) { a.Owner.UID = uid }) }
	sandboxOnly := all(owner(ipam.Owner{Sandbox: "s1"}), terms(func(p *policy.Policy) { p.Pods.Unnamed = policy.Release }))
	hung := all(owner(ipam.Owner{Sandbox: "s1"}), nodes(ready("n1")), pods(starting("n1")), terms(func(p *policy.Policy) { p.Pods.Unnamed = policy.Release }))
	const list, get = "list pods", "get pod default/web"
	for _, tt := range []struct {
		name      string
		situation change
		between   change // in the census of the first look
		now       func(*backendtest.Pods)
		calls     string // for one that is due; empty if it does not matter
		want      error
	}{
		{"its pod is back", all(), nil, add(census.Pod{Ref: web}), get, ipam.ErrReturned},
		{"its pod is back and finished", all(), nil, add(census.Pod{Ref: web, Finished: true}), get, ipam.ErrKept},
		{"its pod is back with another UID", ofUID("old"), nil, add(census.Pod{Ref: web, UID: "new"}), get, ipam.ErrKept},
		{"its replaced pod is the one again", all(ofUID("old"), pods(census.Pod{Ref: web, UID: "new"})), nil, back(census.Pod{Ref: web, UID: "old"}), get, ipam.ErrReturned},
		{"its finished pod runs", all(pods(census.Pod{Ref: web, Finished: true}), terms(releaseAll)), nil, back(census.Pod{Ref: web}), get, ipam.ErrReturned},
		{"no answer", all(), nil, silent(""), get, ipam.ErrAgain},
		{"a sandbox, and a pod shows it", sandboxOnly, nil, add(census.Pod{Ref: other, Sandbox: "s1"}), list, ipam.ErrReturned},
		{"a sandbox, and a pod shows the address", sandboxOnly, nil, add(showing(other, ip1)), list, ipam.ErrReturned},
		{"a sandbox, and a pod does not show its addresses", sandboxOnly, nil, add(census.Pod{Ref: other, AddressUnknown: true}), list, ipam.ErrKept},
		{"a sandbox, and no answer", sandboxOnly, nil, silent(""), list, ipam.ErrAgain},
		{"an empty handle, and no pod has its sandbox", handle, nil, add(), list, nil},
		{"an empty handle, and a pod has its sandbox", handle, nil, add(census.Pod{Ref: other, Sandbox: "s1"}), list, ipam.ErrReturned},
		{"an empty handle, and no answer", handle, nil, silent(""), list, ipam.ErrAgain},
		{"an empty handle of a pod that is absent", named, nil, add(), get, nil},
		{"an empty handle of a pod that is back", named, nil, add(census.Pod{Ref: web}), get, ipam.ErrReturned},
		{"an empty handle of a pod, and no answer", named, nil, silent(""), get, ipam.ErrAgain},
		{"the other sandbox", replace(sandboxSituation), nil, add(), "", nil},
		{"the other sandbox, whose pod is gone by now", replace(sandboxSituation), nil, func(p *backendtest.Pods) { p.Remove(web) }, "", nil},
		{"this sandbox", replace(sandboxSituation), nil, back(s1), "", ipam.ErrReturned},
		{"a sandbox that the store does not have", replace(sandboxSituation), nil, back(forged), "", ipam.ErrReturned},
		{"this sandbox's address", replace(sandboxSituation), nil, back(showing(web, ip1)), "", ipam.ErrReturned},
		{"a pod that moved", moved, nil, add(), get, nil},
		{"a pod that moved, and shows the address by now", moved, nil, back(showing(web, ip1)), get, ipam.ErrReturned},
		{"a pod that hung, and shows the address by now", hung, nil, add(showing(other, ip1)), list, ipam.ErrReturned},
		{"a node was away", all(onNode1, nodes(ready("n1"))), nodes(notReady("n1")), add(), "", ipam.ErrKept},
		{"a StatefulSet brings it back", entry(func(a *ipam.Allocation) { a.Owner.Pod.Name = "db-0" }),
			sets(census.StatefulSet{Namespace: "default", Name: "db", Replicas: 1}), add(), "", ipam.ErrKept},
		{"on a node, the sandbox is still gone", gone, nil, add(), "", nil},
		{"on a node, the sandbox is there", gone, nil, func(p *backendtest.Pods) { p.AddSandboxes(census.Sandbox{ID: "s1"}) }, "", ipam.ErrReturned},
		{"on a node, the sandbox of a pod is there", goneOf, nil, func(p *backendtest.Pods) { p.AddSandboxes(census.Sandbox{ID: "s1"}) }, "", ipam.ErrReturned},
		{"on a node, there is no sandbox any more", gone, nil, func(p *backendtest.Pods) { p.Remove(ipam.PodRef{}) }, "", ipam.ErrAgain},
		{"on a node, a pod shows the address", gone, nil, add(showing(other, ip1)), "", ipam.ErrReturned},
		{"on a node, the runtime does not answer", gone, nil, silent("list sandboxes"), "", ipam.ErrAgain},
		{"on a node, the runtime does not answer of a pod", goneOf, nil, silent("list sandboxes"), "", ipam.ErrAgain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // so that no busy machine lets the look expire
				s := given(tt.situation, waits(0, 0))
				s.ledger = s.seen(t, noon)
				orphans := judge.MakePlan(s.judge(t, noon.Add(time.Hour))).Orphans()
				if len(orphans) == 0 {
					t.Fatal("it is no orphan at the first look")
				}
				if tt.between != nil {
					tt.between(&s)
				}
				h := s.harness()
				tt.now(h.pods)
				ws, errs := reaper.NewConfirmer(h.options().Cluster, s.census(t)).Confirm(t.Context(), orphans[:1])
				if tt.calls != "" {
					equal(t, "calls", h.pods.Calls(), []string{tt.calls})
				}
				if tt.want != nil {
					refused(t, ws[0], errs[0], tt.want)
				} else if _, err := ws[0].Allocation(); errs[0] != nil || err != nil {
					t.Errorf("confirm: %v, %v, want a warrant", errs[0], err)
				}
			})
		})
	}
}

// groupOf returns n allocations of one group, each of another pod.
func groupOf(n int) []ipam.Allocation {
	as := allocations(n)
	for i := range as {
		as[i].Group = "b"
	}
	return as
}

// Promise 1, 4. The second look at any allocation of a group reads the owners of all.
func TestConfirmLooksAtTheOwnersOfAllSiblings(t *testing.T) {
	back := ipam.PodRef{Namespace: "default", Name: "app-1"}
	for _, tt := range []struct {
		name string
		now  []census.Pod
		fail bool
		want error
	}{
		{"nothing changed", nil, false, nil},
		{"the other's pod is back", []census.Pod{{Ref: back}}, false, ipam.ErrReturned},
		{"the other's pod is back and finished", []census.Pod{{Ref: back, Finished: true}}, false, ipam.ErrKept},
		{"the other's pod shows the other's address", []census.Pod{showing(back, allocations(2)[1].IP)}, false, ipam.ErrReturned},
		{"the other's pod cannot be read", nil, true, ipam.ErrAgain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // so that no busy machine lets the warrants expire
				look := newSecondLook(t, &backendtest.Pods{}, groupOf(3)...)
				if look.policy.Pods.Finished = "hold"; tt.fail {
					look.pods.OnCall(failing(errConnection, "get pod default/app-1"))
				}
				look.pods.Add(tt.now...)
				confirmer := look.confirmer()
				for i := range look.orphans {
					look.pods.Calls()
					ws, errs := confirmer.Confirm(t.Context(), look.orphans[i:i+1])
					calls := look.pods.Calls()
					slices.Sort(calls)
					equal(t, "calls", calls, []string{"get pod default/app-0", "get pod default/app-1", "get pod default/app-2"})
					if tt.want != nil {
						refused(t, ws[0], errs[0], tt.want)
					} else if _, err := ws[0].Allocation(); errs[0] != nil || err != nil {
						t.Errorf("confirm: %v, %v, want a warrant", errs[0], err)
					}
				}
			})
		})
	}
}

// Promise 4. A warrant rests on the looks at all siblings, and is as old as the oldest.
// Sixteen pods are read at a time, so here one pod is read after the others.
func TestWarrantOfAGroupIsAsOldAsTheOldestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		look := newSecondLook(t, &backendtest.Pods{}, groupOf(17)...)
		look.pods.OnCall(func(string) error {
			time.Sleep(ipam.Freshness / 5)
			return nil
		})
		began := time.Now()
		ws, errs := look.confirmer().Confirm(t.Context(), look.orphans)
		time.Sleep(time.Until(began.Add(ipam.Freshness)))
		for i := range ws {
			if _, err := ws[i].Allocation(); errs[i] != nil || err != nil {
				t.Fatal(errs[i], err)
			}
		}
		time.Sleep(time.Nanosecond)
		for i := range ws {
			if _, err := ws[i].Allocation(); !errors.Is(err, ipam.ErrAgain) {
				t.Errorf("the warrant for %s: %v, want ErrAgain", look.orphans[i].Allocation().IP, err)
			}
		}
	})
}

// Promise 1, 4. The group has allocations in several batches of one pool.
func TestGroupIsLookedAtAgainForEachWrite(t *testing.T) {
	for _, returns := range []bool{false, true} {
		t.Run(fmt.Sprintf("returns %v", returns), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				as := allocations(ipam.MaxBatch + 1)
				first, last := &as[0], &as[ipam.MaxBatch]
				first.Group, last.Group = "b", "b"
				var h *harness
				writes := 0
				h = newHarness(wrapped{fixedStore{poolOf(as...)}, func(_ context.Context, ws []ipam.Warrant) []error {
					if writes++; returns && writes == 1 {
						h.pods.Add(census.Pod{Ref: first.Owner.Pod})
					}
					time.Sleep(ipam.Freshness) // the shared list has expired
					return make([]error, len(ws))
				}})
				h.policy.Limits.MaxFraction = new(1.0)
				h.pods.Add(census.Pod{Ref: other})
				rep := h.run(t)
				e := rep.Entries[ipam.MaxBatch]
				if !returns {
					equal(t, "outcome", e.Outcome, report.Released)
					equal(t, "writes", writes, 2)
					return
				}
				equal(t, "outcome", e.Outcome, report.Returned)
				if !strings.Contains(e.Error, "of its sibling") {
					t.Errorf("error %q, want the sibling", e.Error)
				}
				equal(t, "writes", writes, 1)
			})
		})
	}
}
