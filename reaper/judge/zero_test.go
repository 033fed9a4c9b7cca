package judge_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// Promise 2, 3.
func TestWithoutABelievedCensusEveryAllocationIsKept(t *testing.T) {
	before := time.Now()
	inv := inventory(t, fixedStore{poolOf(webAllocation())})
	sandboxOnly := webAllocation()
	sandboxOnly.Owner = ipam.Owner{Sandbox: "s1"}
	unnamed := inventory(t, fixedStore{poolOf(sandboxOnly)})
	ownSandbox := webAllocation()
	ownSandbox.Adoption = ipam.SandboxOwned
	perSandbox := inventory(t, fixedStore{poolOf(ownSandbox)})
	ownerless := emptyHandle()
	ownerless.Owner = ipam.Owner{}
	handles, ownerlessHandles := inventory(t, fixedStore{poolOf(emptyHandle())}), inventory(t, fixedStore{poolOf(ownerless)})
	impatient := policy.Default()
	releaseNow(&impatient)
	later := census.New(time.Now(), []census.Pod{{Ref: other}}, nil)
	for _, tt := range []struct {
		name   string
		inv    ipam.Inventory
		census census.Census
	}{
		{"the zero census", inv, census.Census{}},
		{"the zero census and an allocation without a name", unnamed, census.Census{}},
		{"the zero census and a sandbox of its own", perSandbox, census.Census{}},
		{"the zero census and an empty handle", handles, census.Census{}},
		{"the zero census and an empty handle without an owner", ownerlessHandles, census.Census{}},
		{"a census that was begun before the listing ended", inv, census.New(before, nil, nil)},
		{"an inventory that TakeInventory did not make", ipam.Inventory{Listings: inv.Listings}, later},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := impatient
			p.Pods.Unnamed = policy.Release
			decisions := judge.Judge(noon, p, tt.inv, tt.census, ledger.Ledger{})
			equal(t, "verdict", decisionOf(decisions[0]), decision{judge.Held, judge.NoCensus, ""})
			equal(t, "plan", len(judge.MakePlan(decisions).Orphans()), 0)
		})
	}
	decisions := judge.Judge(noon, impatient, inv, later, ledger.Ledger{})
	equal(t, "verdict with a good census", decisionOf(decisions[0]), decision{judge.Orphaned, judge.PodAbsent, ""})
}

// Promise 2.
func TestZeroValuesKeep(t *testing.T) {
	inv := inventory(t, fixedStore{poolOf(webAllocation())})
	decisions := judge.Judge(noon, policy.Policy{}, inv, censusOf(), ledger.Ledger{})
	equal(t, "verdict by the zero policy", decisionOf(decisions[0]), decision{judge.Held, judge.OutOfScope, "namespaces.include has only: "})

	equal(t, "zero verdict", judge.Ruling{}.Verdict, judge.Held)
	equal(t, "zero presence", census.Presence(0), census.Unknown)
	equal(t, "zero status", ipam.Status(0), ipam.StatusFailed)
	equal(t, "verdicts of the zero inventory", len(judge.Judge(noon, policy.Default(), ipam.Inventory{}, censusOf(), ledger.Ledger{})), 0)
	equal(t, "orphans of the zero plan", len(judge.Plan{}.Orphans()), 0)
	equal(t, "what the zero orphan releases", judge.Orphan{}.Allocation(), nil)
}

// Promise 4. A decision that other code made gives no orphan.
func TestOrphanThatNoRuleMadeIsNotStillOrphaned(t *testing.T) {
	plan := judge.MakePlan([]judge.Decision{decided(judge.Orphaned, webAllocation())})
	if _, err := judge.NewSecondLook(censusOf()).StillOrphaned(plan.Orphans()[0]); !errors.Is(err, ipam.ErrNoWarrant) {
		t.Errorf("still orphaned: %v, want ErrNoWarrant", err)
	}
}

// decided returns a decision that code other than Judge made.
func decided(v judge.Verdict, a ipam.Allocation) judge.Decision {
	return judge.Decision{Allocation: &a, Ruling: judge.Ruling{Verdict: v, Reason: judge.PodAbsent}}
}
