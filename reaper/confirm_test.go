package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// A hearing is some orphans before they are confirmed.
type hearing struct {
	policy  policy.Policy
	pods    *backendtest.Pods
	census  reaper.Census
	orphans []reaper.Orphan
}

// newHearing judges the entries by the pods that there are.
func newHearing(t *testing.T, pods *backendtest.Pods, entries ...reaper.Allocation) hearing {
	t.Helper()
	h := hearing{policy: backendtest.Impatient(), pods: pods}
	h.policy.Pods.Unnamed, h.policy.Pods.Finished = policy.Release, policy.Release
	inv := inventory(t, fixedStore{poolOf(entries...)})
	var err error
	if h.census, err = reaper.TakeCensus(t.Context(), pods, reaper.Scope{StatefulSets: true}); err != nil {
		t.Fatal(err)
	}
	h.orphans = reaper.MakePlan(reaper.Judge(noon, h.policy, inv, h.census, reaper.Ledger{})).Orphans()
	if len(h.orphans) != len(entries) {
		t.Fatalf("%d of %d entries are orphans", len(h.orphans), len(entries))
	}
	h.pods.Calls()
	return h
}

// confirmer prepares for confirming that many.
func (h hearing) confirmer(due int) *reaper.Confirmer {
	return reaper.NewConfirmer(h.pods, h.census, due)
}

// entries returns entries of pods app-0, app-1 and so on.
func entries(n int) []reaper.Allocation {
	rs := make([]reaper.Allocation, n)
	for i := range rs {
		rs[i] = webEntry()
		rs[i].Key, rs[i].Token = fmt.Sprint(i), fmt.Sprint("t", i)
		rs[i].IP = netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
		rs[i].Owner.Pod.Name = fmt.Sprintf("app-%d", i)
	}
	return rs
}

// refused fails the test unless the answer is an error and no warrant.
func refused(t *testing.T, w reaper.Warrant, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("confirm: %v, want %v", err, want)
	}
	if _, err := w.Allocation(); !errors.Is(err, reaper.ErrNoWarrant) {
		t.Errorf("its warrant: %v, want ErrNoWarrant", err)
	}
}

// Promise 4.
func TestConfirmWarrantsWhatIsStillGone(t *testing.T) {
	h := newHearing(t, &backendtest.Pods{}, entries(2)...)
	ws, errs := h.confirmer(2).Confirm(t.Context(), h.orphans)
	for i := range h.orphans {
		r, err := ws[i].Allocation()
		if errs[i] != nil || err != nil {
			t.Fatalf("confirm: %v, %v", errs[i], err)
		}
		equal(t, "reservation", r, h.orphans[i].Allocation(), asValues)
	}
}

// Promise 1, 4. The entry of app-0 was an orphan when it was judged.
func TestConfirmRefusesWhatIsNoOrphanAnyMore(t *testing.T) {
	app := reaper.PodRef{Namespace: "default", Name: "app-0"}
	ip := entries(1)[0].IP
	for _, tt := range []struct {
		name  string
		owner reaper.Owner
		first []reaper.Pod
		now   []reaper.Pod
		want  error
	}{
		{"its pod is back", reaper.Owner{Pod: app}, nil, []reaper.Pod{{Ref: app}}, reaper.ErrReturned},
		{"its pod is back and finished", reaper.Owner{Pod: app}, nil, []reaper.Pod{{Ref: app, Finished: true}}, reaper.ErrKept},
		{"its pod is back with another UID", reaper.Owner{Pod: app, UID: "old"}, nil, []reaper.Pod{{Ref: app, UID: "new"}}, reaper.ErrKept},
		{"its replaced pod is the one again", reaper.Owner{Pod: app, UID: "old"},
			[]reaper.Pod{{Ref: app, UID: "new"}}, []reaper.Pod{{Ref: app, UID: "old"}}, reaper.ErrReturned},
		{"its finished pod runs", reaper.Owner{Pod: app}, []reaper.Pod{{Ref: app, Finished: true}}, []reaper.Pod{{Ref: app}}, reaper.ErrReturned},
		{"a pod shows its sandbox", reaper.Owner{Sandbox: "s1"}, nil, []reaper.Pod{{Ref: other, Sandbox: "s1"}}, reaper.ErrReturned},
		{"a pod shows the address of a sandbox", reaper.Owner{Sandbox: "s1"}, nil, []reaper.Pod{showing(other, ip)}, reaper.ErrReturned},
		{"a pod is mute, beside a sandbox", reaper.Owner{Sandbox: "s1"}, nil, []reaper.Pod{{Ref: other, AddressUnknown: true}}, reaper.ErrKept},
	} {
		for _, due := range []int{1, 1000} {
			t.Run(fmt.Sprintf("%s, %d due", tt.name, due), func(t *testing.T) {
				r := entries(1)[0]
				r.Owner = tt.owner
				pods := &backendtest.Pods{}
				pods.Add(tt.first...)
				h := newHearing(t, pods, r)
				pods.Add(tt.now...)
				ws, errs := h.confirmer(due).Confirm(t.Context(), h.orphans)
				refused(t, ws[0], errs[0], tt.want)
			})
		}
	}
}

// A finished pod whose Job is cleaned up is gone, and not back.
func TestConfirmWarrantsWhatIsGoneByNow(t *testing.T) {
	r := entries(1)[0]
	pods := &backendtest.Pods{}
	pods.Add(reaper.Pod{Ref: r.Owner.Pod, Finished: true})
	h := newHearing(t, pods, r)
	pods.Remove(r.Owner.Pod)
	ws, errs := h.confirmer(1).Confirm(t.Context(), h.orphans)
	if _, err := ws[0].Allocation(); errs[0] != nil || err != nil {
		t.Errorf("confirm: %v, %v, want a warrant", errs[0], err)
	}
}

// Promise 4. Each try looks for itself: a listing that an earlier one used is
// not shared with it.
func TestConfirmLooksAnewAfterForget(t *testing.T) {
	pods := &backendtest.Pods{}
	h := newHearing(t, pods, entries(1)...)
	confirmer := h.confirmer(1000)
	_, errs := confirmer.Confirm(t.Context(), h.orphans)
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	pods.Add(reaper.Pod{Ref: h.orphans[0].Allocation().Owner.Pod})
	confirmer.Forget()
	ws, errs := confirmer.Confirm(t.Context(), h.orphans)
	refused(t, ws[0], errs[0], reaper.ErrReturned)
}

// Promise 1. The owners of a batch are looked at together, so that one of them
// can protect what another left.
func TestConfirmSeesAnotherOwnerWithTheAddress(t *testing.T) {
	for _, due := range []int{2, 1000} {
		rs := entries(2)
		pods := &backendtest.Pods{}
		h := newHearing(t, pods, rs...)
		pods.Add(showing(rs[1].Owner.Pod, rs[0].IP))
		ws, errs := h.confirmer(due).Confirm(t.Context(), h.orphans)
		refused(t, ws[0], errs[0], reaper.ErrReturned)
		refused(t, ws[1], errs[1], reaper.ErrReturned)
	}
}

// Promise 2, 4.
func TestConfirmSaysAgainWhereItCannotTell(t *testing.T) {
	failure := errors.New("etcd is slow")
	for _, tt := range []struct {
		name  string
		due   int
		owner func(*reaper.Owner)
		call  string
	}{
		{"one by one", 1, nil, "get pod default/app-0"},
		{"in bulk", 1000, nil, "list pods"},
		{"a sandbox only", 1, func(o *reaper.Owner) { *o = reaper.Owner{Sandbox: "s1"} }, "list pods"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := entries(1)[0]
			if tt.owner != nil {
				tt.owner(&r.Owner)
			}
			h := newHearing(t, &backendtest.Pods{}, r)
			c := h.confirmer(tt.due)
			h.pods.OnCall(func(string) error { return failure })
			ws, errs := c.Confirm(t.Context(), h.orphans)
			refused(t, ws[0], errs[0], reaper.ErrAgain)
			refused(t, ws[0], errs[0], failure)
			equal(t, "calls", h.pods.Calls(), []string{tt.call})

			h.pods.OnCall(nil)
			if _, errs := c.Confirm(t.Context(), h.orphans); errs[0] != nil {
				t.Errorf("once it answers: %v", errs[0])
			}
		})
	}
}

// Promise 9. One owner that cannot be looked at is no reason to keep another's.
func TestOneFailingLookSpoilsNoOther(t *testing.T) {
	h := newHearing(t, &backendtest.Pods{}, entries(3)...)
	h.pods.OnCall(func(call string) error {
		if call == "get pod default/app-1" {
			return errors.New("no")
		}
		return nil
	})
	ws, errs := h.confirmer(3).Confirm(t.Context(), h.orphans)
	refused(t, ws[1], errs[1], reaper.ErrAgain)
	if errs[0] != nil || errs[2] != nil {
		t.Errorf("the others: %v, %v", errs[0], errs[2])
	}
}

// A mumbler is a cluster that contradicts itself, or says nothing.
type mumbler struct {
	reaper.Cluster
	presence reaper.Presence
	err      error
}

func (m *mumbler) Pod(context.Context, reaper.PodRef) (reaper.Pod, reaper.Presence, error) {
	return reaper.Pod{}, m.presence, m.err
}

// Promise 2.
func TestOnlyAClearAbsenceConfirms(t *testing.T) {
	h := newHearing(t, &backendtest.Pods{}, entries(1)...)
	for _, m := range []*mumbler{
		{presence: reaper.Unknown},
		{presence: reaper.Absent, err: errors.New("404 page not found")},
	} {
		ws, errs := reaper.NewConfirmer(m, h.census, 1).Confirm(t.Context(), h.orphans)
		refused(t, ws[0], errs[0], reaper.ErrAgain)
	}
	ws, errs := reaper.NewConfirmer(h.pods, reaper.Census{}, 1).Confirm(t.Context(), h.orphans)
	refused(t, ws[0], errs[0], reaper.ErrAgain)
}
