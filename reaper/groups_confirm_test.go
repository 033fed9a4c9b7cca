package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// boundEntries are n entries of one group, each of another pod.
func boundEntries(n int) []reaper.Allocation {
	rs := entries(n)
	for i := range rs {
		rs[i].Group = "b"
	}
	return rs
}

// Promise 1, 4. Whichever of them is asked about, all are looked at.
func TestConfirmLooksAtWhatAnEntryIsBoundTo(t *testing.T) {
	back := reaper.PodRef{Namespace: "default", Name: "app-1"}
	for _, tt := range []struct {
		name string
		now  []reaper.Pod
		fail bool
		want error
	}{
		{"nothing changed", nil, false, nil},
		{"the other's pod is back", []reaper.Pod{{Ref: back}}, false, reaper.ErrReturned},
		{"the other's pod is back and finished", []reaper.Pod{{Ref: back, Finished: true}}, false, reaper.ErrKept},
		{"the other's pod shows the other's address", []reaper.Pod{showing(back, entries(2)[1].IP)}, false, reaper.ErrReturned},
		{"the other's pod cannot be looked at", nil, true, reaper.ErrAgain},
	} {
		for _, due := range []int{1, 1000} {
			t.Run(fmt.Sprintf("%s, %d due", tt.name, due), func(t *testing.T) {
				h := newHearing(t, &backendtest.Pods{}, boundEntries(3)...)
				if h.policy.Pods.Finished = "hold"; tt.fail {
					h.pods.OnCall(func(call string) error {
						if call == "get pod default/app-1" || call == "list pods" {
							return errConnection
						}
						return nil
					})
				}
				h.pods.Add(tt.now...)
				confirmer := h.confirmer(due)
				for i := range h.orphans {
					if confirmer.Forget(); due == 1 {
						h.pods.Calls()
					}
					ws, errs := confirmer.Confirm(t.Context(), h.orphans[i:i+1])
					if due == 1 {
						calls := h.pods.Calls()
						slices.Sort(calls)
						equal(t, "calls", calls, []string{"get pod default/app-0", "get pod default/app-1", "get pod default/app-2"})
					}
					if tt.want != nil {
						refused(t, ws[0], errs[0], tt.want)
					} else if _, err := ws[0].Allocation(); errs[0] != nil || err != nil {
						t.Errorf("confirm: %v, %v, want a warrant", errs[0], err)
					}
				}
			})
		}
	}
}

// Promise 7. The outcome says which of them it was.
func TestConfirmNamesWhatKeepsTheGroup(t *testing.T) {
	rs := boundEntries(2)
	h := newHearing(t, &backendtest.Pods{}, rs...)
	h.pods.Add(reaper.Pod{Ref: rs[1].Owner.Pod})
	_, errs := h.confirmer(1).Confirm(t.Context(), h.orphans[:1])
	equal(t, "error", fmt.Sprint(errs[0]), "the owner came back: now PodPresent (of its sibling 10.1.0.1)")
}

// Promise 1, 4. One that names no pod has all of them looked at, and one that is
// guessed too.
func TestGroupWithAnEntryThatNamesNoPodCallsForAList(t *testing.T) {
	for name, change := range map[string]func(*reaper.Allocation){
		"no pod":   func(r *reaper.Allocation) { r.Owner = reaper.Owner{Sandbox: "s1"} },
		"inferred": func(r *reaper.Allocation) { r.Inferred = true },
	} {
		t.Run(name, func(t *testing.T) {
			rs := boundEntries(2)
			change(&rs[1])
			h := newHearing(t, &backendtest.Pods{}, rs...)
			ws, errs := h.confirmer(1).Confirm(t.Context(), h.orphans[:1])
			equal(t, "error", errs[0], nil)
			equal(t, "calls", h.pods.Calls(), []string{"list pods"})

			h.pods.Add(showing(other, rs[1].IP))
			again, err := ws[0].Renew(t.Context())
			refused(t, again, err, reaper.ErrReturned)
			equal(t, "calls", h.pods.Calls(), []string{"list pods"})
		})
	}
}

// Promise 1, 4.
func TestRenewLooksAtWhatAnEntryIsBoundTo(t *testing.T) {
	rs := boundEntries(2)
	h := newHearing(t, &backendtest.Pods{}, rs...)
	ws, _ := h.confirmer(1).Confirm(t.Context(), h.orphans)
	fresh, err := ws[0].Renew(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.pods.Add(reaper.Pod{Ref: rs[1].Owner.Pod})
	again, err := fresh.Renew(t.Context())
	refused(t, again, err, reaper.ErrReturned)
}

// Promise 4. A warrant rests on all the looks, and is as old as the oldest.
// Sixteen pods are read at a time, so that here one is read after the others.
func TestWarrantOfAGroupIsAsOldAsTheOldestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t, &backendtest.Pods{}, boundEntries(17)...)
		h.pods.OnCall(func(string) error {
			time.Sleep(reaper.Freshness / 2)
			return nil
		})
		ws, errs := h.confirmer(1).Confirm(t.Context(), h.orphans)
		for i := range ws {
			if _, err := ws[i].Allocation(); errs[i] != nil || err != nil {
				t.Fatal(errs[i], err)
			}
		}
		time.Sleep(time.Nanosecond)
		for i := range ws {
			if _, err := ws[i].Allocation(); !errors.Is(err, reaper.ErrAgain) {
				t.Errorf("the warrant for %s: %v, want ErrAgain", h.orphans[i].Allocation().IP, err)
			}
		}
	})
}

// hooked is a store of pools whose releases call the hook.
func hooked(pools []reaper.Pool, hook func(pool string, ws []reaper.Warrant)) reaper.Backend {
	return wrapped{fixedStore(pools), func(_ context.Context, pool string, ws []reaper.Warrant) []error {
		hook(pool, ws)
		return make([]error, len(ws))
	}}
}

// Promise 1, 4. Members in several pools, and in several batches of one.
func TestGroupIsLookedAtAgainForEachWrite(t *testing.T) {
	for name, split := range map[string]func([]reaper.Allocation) []reaper.Pool{
		"in units": func(rs []reaper.Allocation) []reaper.Pool {
			last := poolOf(rs[len(rs)-1])
			last.Name = "there"
			return []reaper.Pool{poolOf(rs[:len(rs)-1]...), last}
		},
		"in batches": func(rs []reaper.Allocation) []reaper.Pool { return []reaper.Pool{poolOf(rs...)} },
	} {
		for _, returns := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, returns %v", name, returns), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rs := entries(reaper.MaxBatch + 1)
					first, last := &rs[0], &rs[reaper.MaxBatch]
					first.Group, last.Group = "b", "b"
					var w *world
					writes := 0
					w = newWorld(hooked(split(rs), func(string, []reaper.Warrant) {
						if writes++; returns && writes == 1 {
							w.pods.Add(reaper.Pod{Ref: first.Owner.Pod})
						}
						time.Sleep(reaper.Freshness) // a shared listing is over
					}))
					one := 1.0
					w.policy.Limits.MaxFraction = &one
					w.pods.Add(reaper.Pod{Ref: other})
					w.change = func(o *reaper.Options) { o.Concurrency = 1 }
					report := w.run(t)
					e := report.Entries[reaper.MaxBatch]
					if !returns {
						equal(t, "outcome", e.Outcome, reaper.Released)
						equal(t, "writes", writes, 2)
						return
					}
					equal(t, "outcome", e.Outcome, reaper.Returned)
					if !strings.Contains(e.Error, "of its sibling") {
						t.Errorf("error %q, want the sibling", e.Error)
					}
					equal(t, "writes", writes, 1)
				})
			})
		}
	}
}

// Promise 1, 4. What the store did not decide is confirmed with all that it is
// bound to, also with what is released already.
func TestGroupIsLookedAtAgainForEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rs := boundEntries(2)
		var w *world
		attempts := 0
		w = newWorld(wrapped{fixedStore{poolOf(rs...)}, func(_ context.Context, _ string, ws []reaper.Warrant) []error {
			if attempts++; attempts == 3 {
				t.Error("there was a third attempt")
			}
			w.pods.Add(reaper.Pod{Ref: rs[0].Owner.Pod})
			return []error{nil, reaper.ErrAgain}[:len(ws)]
		}})
		w.pods.Add(reaper.Pod{Ref: other})
		report := w.run(t)
		equal(t, "outcomes", outcomes(report), map[string]reaper.Outcome{"0": reaper.Released, "1": reaper.Returned})
		equal(t, "attempts", attempts, 1)
	})
}

// Promise 1. One sandbox has two addresses, and its pod shows only one of them.
// The entry of the other names a pod that never was.
func TestGroupKeepsWhatNobodyShows(t *testing.T) {
	m := backendtest.NewHandled("memory")
	m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
	w := newWorld(m.Backend())
	shown, err := m.Reserve("a", app("live"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := m.Reserve("b", app("live"))
	if err != nil {
		t.Fatal(err)
	}
	w.pods.Add(reaper.Pod{Ref: app("live").Pod, UID: app("live").UID, Sandbox: "sandbox-live", Addresses: []netip.Addr{shown.IP}})
	m.Rename(hidden, reaper.PodRef{Namespace: "default", Name: "nobody"})
	before := contentsOf(t, m)
	report := w.run(t)
	equal(t, "verdict", report.Entries[1].Reason, reaper.SiblingKept)
	equal(t, "store", contentsOf(t, m), before)
}
