package reaper_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// A secondLook has the orphans of a plan before they are confirmed.
type secondLook struct {
	policy  policy.Policy
	pods    *backendtest.Pods
	census  census.Census
	orphans []judge.Orphan
}

// newSecondLook makes the plan for the allocations, with the pods that exist.
func newSecondLook(t *testing.T, pods *backendtest.Pods, entries ...ipam.Allocation) secondLook {
	t.Helper()
	look := secondLook{policy: backendtest.Impatient(), pods: pods}
	look.policy.Pods.Unnamed, look.policy.Pods.Finished = policy.Release, policy.Release
	inv := inventory(t, fixedStore{poolOf(entries...)})
	var err error
	if look.census, err = census.Take(t.Context(), pods, census.Scope{StatefulSets: true}); err != nil {
		t.Fatal(err)
	}
	look.orphans = judge.MakePlan(judge.Judge(noon, look.policy, inv, look.census, ledger.Ledger{})).Orphans()
	if len(look.orphans) != len(entries) {
		t.Fatalf("%d of %d allocations are orphans, want all", len(look.orphans), len(entries))
	}
	look.pods.Calls()
	return look
}

// confirmer returns a Confirmer that has looked at nothing yet.
func (look secondLook) confirmer() *reaper.Confirmer {
	return reaper.NewConfirmer(look.pods, look.census)
}

// renewed looks at the owner of one warrant again.
func renewed(ctx context.Context, w ipam.Warrant) (ipam.Warrant, error) {
	fresh, errs := ipam.Renew(ctx, []ipam.Warrant{w})
	return fresh[0], errs[0]
}

// refused fails the test unless there is the wanted error and no valid warrant.
func refused(t *testing.T, w ipam.Warrant, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("confirm: %v, want %v", err, want)
	}
	if _, err := w.Allocation(); !errors.Is(err, ipam.ErrNoWarrant) {
		t.Errorf("its warrant: %v, want ErrNoWarrant", err)
	}
}

// Promise 1. The owners of a batch are read together. So the second look sees that one
// of them shows the address of another.
func TestConfirmSeesAnotherOwnerWithTheAddress(t *testing.T) {
	as := allocations(2)
	pods := &backendtest.Pods{}
	look := newSecondLook(t, pods, as...)
	pods.Add(showing(as[1].Owner.Pod, as[0].IP))
	ws, errs := look.confirmer().Confirm(t.Context(), look.orphans)
	refused(t, ws[0], errs[0], ipam.ErrReturned)
	refused(t, ws[1], errs[1], ipam.ErrReturned)
}

// A vagueCluster contradicts itself, or returns no clear answer.
type vagueCluster struct {
	census.Cluster
	presence census.Presence
	err      error
}

func (m *vagueCluster) Pod(context.Context, ipam.PodRef) (census.Pod, census.Presence, error) {
	return census.Pod{}, m.presence, m.err
}

// Promise 2.
func TestOnlyAClearAbsenceConfirms(t *testing.T) {
	look := newSecondLook(t, &backendtest.Pods{}, allocations(1)...)
	for _, m := range []*vagueCluster{
		{presence: census.Unknown},
		{presence: census.Absent, err: errors.New("404 page not found")},
	} {
		ws, errs := reaper.NewConfirmer(m, look.census).Confirm(t.Context(), look.orphans)
		refused(t, ws[0], errs[0], ipam.ErrAgain)
	}
	ws, errs := reaper.NewConfirmer(look.pods, census.Census{}).Confirm(t.Context(), look.orphans)
	refused(t, ws[0], errs[0], ipam.ErrAgain)
}
