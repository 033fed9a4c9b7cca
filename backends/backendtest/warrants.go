package backendtest

import (
	"math"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// Impatient returns the default policy with dryRun false, and gracePeriod and minAge zero.
func Impatient() policy.Policy {
	p := policy.Default()
	dryRun := false
	p.DryRun, p.GracePeriod, p.MinAge = &dryRun, &policy.Duration{}, &policy.Duration{}
	return p
}

// impatientWithoutNodes returns the policy Impatient for a cluster that has no nodes: each node
// that a store has could be another cluster's.
func impatientWithoutNodes() policy.Policy {
	p := Impatient()
	p.Nodes.Foreign = policy.Release
	return p
}

// Orphans returns the orphans of a run with the policy Impatient, no nodes and no limits, by Place,
// and the confirmer for them. It fails the test if the backend or the cluster cannot be listed.
func Orphans(t testing.TB, b ipam.Backend, cluster census.Cluster) (map[string]judge.Orphan, *reaper.Confirmer) {
	t.Helper()
	inv := ipam.TakeInventory(t.Context(), []ipam.Backend{b}, func(string) bool { return true })
	if l := inv.Listings[0]; l.Status != ipam.StatusOK {
		t.Fatalf("list %s: %v: %s", b.Name(), l.Status, l.Message)
	}
	census, err := census.Take(t.Context(), cluster, census.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	terms := impatientWithoutNodes()
	terms.Limits.MinEntries = new(math.MaxInt) // the store may have no live pod
	plan := judge.MakePlan(judge.Judge(time.Now(), terms, inv, census, ledger.Ledger{}))
	orphans := make(map[string]judge.Orphan)
	for _, o := range plan.Orphans() {
		orphans[Place(*o.Allocation())] = o
	}
	return orphans, reaper.NewConfirmer(cluster, census)
}

// Warrants returns a warrant for each entry. Like the engine, it lists, judges and confirms
// them. It fails the test if an entry gets none.
func Warrants(t testing.TB, b ipam.Backend, cluster census.Cluster, rs ...ipam.Allocation) []ipam.Warrant {
	t.Helper()
	orphans, confirmer := Orphans(t, b, cluster)
	chosen := make([]judge.Orphan, len(rs))
	for i, r := range rs {
		o, ok := orphans[Place(r)]
		if !ok {
			t.Fatalf("%s is not an orphan; the orphans are %v", Place(r), orphans)
		}
		chosen[i] = o
	}
	warrants, errs := confirmer.Confirm(t.Context(), chosen)
	for i, err := range errs {
		if err != nil {
			t.Fatalf("confirm %s: %v", Place(rs[i]), err)
		}
	}
	return warrants
}
