package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
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

// Promise 2, 4. A look that gets no answer proves nothing, whether a read or a list would have given
// it.
func TestLookWithoutAnAnswerGivesNoWarrant(t *testing.T) {
	handle := ipam.Allocation{Key: "net.s1", Token: "t1", EmptyHandle: true, Owner: ipam.Owner{Sandbox: "s1"}}
	ofSandbox, ofPod := webAllocation(), handle
	ofSandbox.Owner, ofPod.Owner.Pod = ipam.Owner{Sandbox: "s1"}, web
	leaseOfWeb := lease()
	leaseOfWeb.Owner.Pod = web
	for _, tt := range []struct {
		name      string
		a         ipam.Allocation
		sandboxes []string // of the node, if the run is on one
		silent    string   // the request without an answer
	}{
		{"a pod", webAllocation(), nil, "get pod default/web"},
		{"a sandbox", ofSandbox, nil, "list pods"},
		{"an empty handle", handle, nil, "list pods"},
		{"an empty handle of a pod", ofPod, nil, "get pod default/web"},
		{"on a node, a sandbox", lease(), []string{"s2"}, "list sandboxes"},
		{"on a node, the sandbox of a pod", leaseOfWeb, []string{"s2"}, "list sandboxes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := situation{pools: []ipam.Pool{poolOf(tt.a)}, sandboxes: tt.sandboxes, policy: func(p *policy.Policy) {
				p.GracePeriod, p.MinAge, p.Pods.Unnamed = &policy.Duration{}, &policy.Duration{}, policy.Release
			}}
			s.ledger = s.seen(t, noon)
			orphans := judge.MakePlan(s.judge(t, noon.Add(time.Hour))).Orphans()
			h := s.harness()
			confirmer := reaper.NewConfirmer(h.options().Cluster, s.census(t))
			h.pods.OnCall(failing(errors.New("no answer"), tt.silent))
			ws, errs := confirmer.Confirm(t.Context(), orphans)
			refused(t, ws[0], errs[0], ipam.ErrAgain)
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

// A told is a store that has an endpoint for web, which may change between two looks.
type told struct {
	fixedStore
	endpoint *atomic.Pointer[ipam.Endpoint]
}

// tells returns a store that has an endpoint.
func tells(pool ipam.Pool, endpoint ipam.Endpoint) told {
	s := told{fixedStore{pool}, new(atomic.Pointer[ipam.Endpoint])}
	s.endpoint.Store(&endpoint)
	return s
}

func (s told) Endpoints(_ context.Context, as []*ipam.Allocation) []ipam.Endpoint {
	return slices.Repeat([]ipam.Endpoint{*s.endpoint.Load()}, len(as))
}

// Promise 1, 2, 4. A sandbox is replaced, by the endpoint of a pod that waits or by the status of one that
// does not. The second look reads the endpoint again, by name.
func TestSecondLookReadsTheEndpointAgain(t *testing.T) {
	older, newer := calicoOf("n1"), calicoOf("n1")
	newer.Key, newer.IP, newer.Token, newer.Group, newer.Owner.Sandbox, newer.Created = "8", ip1, "c2", "handle-s2", "s2", noon.Add(-time.Minute)
	of := func(a ipam.Allocation) ipam.Endpoint {
		return ipam.Endpoint{Name: "e", Sandbox: a.Owner.Sandbox, Addresses: []netip.Addr{a.IP}}
	}
	waits := census.Pod{Ref: web, Node: "n1", AddressUnknown: true, Starting: true}
	shows := census.Pod{Ref: web, Node: "n1", Addresses: []netip.Addr{ip1}, InStatus: 1}
	first, third := of(older), ipam.Endpoint{Name: "e", Sandbox: "s3", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.3")}}
	unread := ipam.Endpoint{Err: errConnection}
	for _, tt := range []struct {
		name       string
		pod        census.Pod
		then       ipam.Endpoint // at the second look
		want       report.Fate
		wantIfNone report.Fate // if there is none at the first look
	}{
		{"it waits, and the endpoint is the same", waits, of(newer), report.Released, report.Kept},
		{"it waits, and there is none", waits, ipam.Endpoint{}, report.Returned, report.Kept},
		{"it waits, and the endpoint is of this sandbox", waits, first, report.Returned, report.Kept},
		{"it waits, and the endpoint is of a third one", waits, third, report.Returned, report.Kept},
		{"it waits, and the endpoint cannot be read", waits, unread, report.Failed, report.Kept},
		{"it waits, and stands for the endpoint without naming a sandbox", waits, ipam.Endpoint{InPod: true}, report.Returned, report.Kept},
		{"it shows the other, and there is none", shows, ipam.Endpoint{}, report.Released, report.Released},
		{"it shows the other, and the endpoint is of this sandbox", shows, first, report.Returned, report.Returned},
		{"it shows the other, and the endpoint cannot be read", shows, unread, report.Failed, report.Failed},
	} {
		for _, none := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, ", none at first: ", none), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := tells(poolOf(older, newer), of(newer))
					want := tt.want
					if none {
						store.endpoint.Store(new(ipam.Endpoint))
						want = tt.wantIfNone
					}
					h := newHarness(store)
					h.policy.Limits.MaxFraction = new(1.0)
					h.pods.Add(tt.pod)
					h.pods.AddNodes(census.Node{Name: "n1", Ready: true})
					h.run(t)
					h.now = h.now.Add(time.Hour)
					h.pods.OnCall(func(call string) error {
						if call == "get pod default/web" {
							store.endpoint.Store(&tt.then)
						}
						return nil
					})
					r, _ := reaper.Run(t.Context(), h.options())
					equal(t, "outcome", r.Entries[0].Outcome, want)
				})
			})
		}
	}
}
