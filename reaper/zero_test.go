package reaper_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 2, 3.
func TestWithoutABelievedCensusEveryAllocationIsKept(t *testing.T) {
	before := time.Now()
	inv := inventory(t, fixedStore{poolOf(webAllocation())})
	sandboxOnly := webAllocation()
	sandboxOnly.Owner = reaper.Owner{Sandbox: "s1"}
	unnamed := inventory(t, fixedStore{poolOf(sandboxOnly)})
	guessed, ownSandbox := webAllocation(), webAllocation()
	guessed.Inferred, ownSandbox.SandboxOwned = true, true
	inferred, perSandbox := inventory(t, fixedStore{poolOf(guessed)}), inventory(t, fixedStore{poolOf(ownSandbox)})
	ownerless := emptyHandle()
	ownerless.Owner = reaper.Owner{}
	handles, ownerlessHandles := inventory(t, fixedStore{poolOf(emptyHandle())}), inventory(t, fixedStore{poolOf(ownerless)})
	later := reaper.NewCensus(time.Now(), []reaper.Pod{{Ref: other}}, nil)
	for _, tt := range []struct {
		name   string
		inv    reaper.Inventory
		census reaper.Census
	}{
		{"the zero census", inv, reaper.Census{}},
		{"the zero census and an allocation without a name", unnamed, reaper.Census{}},
		{"the zero census and an inferred name", inferred, reaper.Census{}},
		{"the zero census and a sandbox of its own", perSandbox, reaper.Census{}},
		{"the zero census and an empty handle", handles, reaper.Census{}},
		{"the zero census and an empty handle without an owner", ownerlessHandles, reaper.Census{}},
		{"a census that was begun before the listing ended", inv, reaper.NewCensus(before, nil, nil)},
		{"an empty census from before", inv, reaper.NewCensus(time.Time{}, nil, nil)},
		{"an inventory that TakeInventory did not make", reaper.Inventory{Listings: inv.Listings}, later},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := backendtest.Impatient()
			p.Pods.Unnamed = policy.Release
			decisions := reaper.Judge(noon, p, tt.inv, tt.census, reaper.Ledger{})
			equal(t, "verdict", decisionOf(decisions[0]), decision{reaper.Held, reaper.NoCensus, ""})
			equal(t, "plan", len(reaper.MakePlan(decisions).Orphans()), 0)
		})
	}
	decisions := reaper.Judge(noon, backendtest.Impatient(), inv, later, reaper.Ledger{})
	equal(t, "verdict with a good census", decisionOf(decisions[0]), decision{reaper.Orphaned, reaper.PodAbsent, ""})
}

// Promise 2.
func TestZeroValuesKeep(t *testing.T) {
	inv := inventory(t, fixedStore{poolOf(webAllocation())})
	decisions := reaper.Judge(noon, policy.Policy{}, inv, censusOf(), reaper.Ledger{})
	equal(t, "verdict by the zero policy", decisionOf(decisions[0]), decision{reaper.Held, reaper.OutOfScope, "namespaces.include has only: "})

	equal(t, "zero verdict", reaper.Ruling{}.Verdict, reaper.Held)
	equal(t, "text of the zero verdict", reaper.Verdict(0).String(), "held")
	equal(t, "text of an unknown verdict", reaper.Verdict(99).String(), "held")
	equal(t, "zero presence", reaper.Presence(0), reaper.Unknown)
	equal(t, "zero status", reaper.Status(0), reaper.StatusFailed)
	equal(t, "zero status's word", reaper.Status(0).String(), "failed")
	equal(t, "a status that does not exist", reaper.Status(99).String(), "failed")
	equal(t, "verdicts of the zero inventory", len(reaper.Judge(noon, policy.Default(), reaper.Inventory{}, censusOf(), reaper.Ledger{})), 0)
	equal(t, "orphans of the zero plan", len(reaper.Plan{}.Orphans()), 0)
	equal(t, "what the zero orphan releases", reaper.Orphan{}.Allocation(), reaper.Allocation{}, asValues)
}

// Promise 4. A decision that other code made gives no orphan.
func TestOnlyJudgeMakesAnOrphan(t *testing.T) {
	plan := reaper.MakePlan([]reaper.Decision{decided(reaper.Orphaned, webAllocation())})
	confirmer := reaper.NewConfirmer(&backendtest.Pods{}, censusOf(), 1)
	warrants, errs := confirmer.Confirm(t.Context(), plan.Orphans())
	if !errors.Is(errs[0], reaper.ErrNoWarrant) {
		t.Errorf("confirm: %v, want ErrNoWarrant", errs[0])
	}
	if _, err := warrants[0].Allocation(); !errors.Is(err, reaper.ErrNoWarrant) {
		t.Errorf("its warrant: %v, want ErrNoWarrant", err)
	}
}

// Promise 4.
func TestZeroWarrantPermitsNothing(t *testing.T) {
	var w reaper.Warrant
	if _, err := w.Allocation(); !errors.Is(err, reaper.ErrNoWarrant) {
		t.Errorf("Reservation: %v, want ErrNoWarrant", err)
	}
	if _, err := w.Renew(t.Context()); !errors.Is(err, reaper.ErrNoWarrant) {
		t.Errorf("Renew: %v, want ErrNoWarrant", err)
	}
}
