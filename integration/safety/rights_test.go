package safety_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/proxy"
	"github.com/ip-reaper/ip-reaper/integration/realcluster"
	"github.com/ip-reaper/ip-reaper/integration/reap"
)

// errand is work that needs every right that a run can need, done in two runs:
// the first creates the ledger and a journal, meets a pool that changes under its
// patch, and takes up a tombstone; the second updates the ledger, and has the
// journal of the first to delete. What only disturbs is in the warnings. It returns
// what went wrong, or nothing.
func (a *account) errand(t *testing.T) (wrong string) {
	t.Helper()
	a.wipe(t)
	a.unlock(t)
	a.put(t, network.Range, map[int]string{1: "gone-1", 2: "live", 3: "gone-3"})
	a.put(t, "10.2.0.0/24", map[int]string{1: "slow-1"})
	a.reserve(t, "10.3.0.1", a.ref("gone-5"))
	a.setOwner(t, "10.3.0.1", tombstone, a.ref("gone-5"))
	a.toReaper.Before(proxy.Nth(1, proxy.On("patch ippools")), func(context.Context, proxy.Request) proxy.Action {
		a.adopt(t, network.Range, "3", "sandbox-3")
		return proxy.Pass()
	})
	for n := range 2 {
		result, err := a.launch(t, releaseNow+slowRule+"journal: {keep: 1}\n").Wait()
		if err != nil {
			t.Fatal(err)
		}
		if result.ExitCode != reap.ExitDone || len(result.Report.Warnings) > 0 {
			return fmt.Sprintf("run %d exits with %d and warns of %v", n+1, result.ExitCode, result.Report.Warnings)
		}
		if n == 0 {
			a.put(t, "10.4.0.0/24", map[int]string{1: "slow-2", 2: "gone-6"})
		}
	}
	end := store{
		"10.1.0.0-24 10.1.0.2": a.ref("live") + " sandbox-live", "10.1.0.2": a.ref("live"),
		"10.2.0.0-24 10.2.0.1": a.ref("slow-1") + " sandbox-slow-1", "10.2.0.1": a.ref("slow-1"),
		"10.4.0.0-24 10.4.0.1": a.ref("slow-2") + " sandbox-slow-2", "10.4.0.1": a.ref("slow-2"),
	}
	return cmp.Diff(end, a.store(t))
}

// adopt changes the entry's sandbox, as a pod that comes back does.
func (s *scene) adopt(t *testing.T, cidr, key, sandbox string) {
	t.Helper()
	_, err := s.Whereabouts.WhereaboutsV1alpha1().IPPools(realcluster.PoolNamespace).Patch(t.Context(), poolName(cidr),
		types.MergePatchType, []byte(`{"spec":{"allocations":{"`+key+`":{"id":"`+sandbox+`"}}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Error(err)
	}
}

// setOwner changes what a reservation says of its owner, now and before.
func (s *scene) setOwner(t *testing.T, ip, ref, before string) {
	t.Helper()
	_, err := s.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(realcluster.PoolNamespace).Patch(t.Context(),
		ip, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"ip-reaper/owner":"`+before+`"}},"spec":{"podref":"`+ref+`"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// A service account with exactly the roles that deploy/rbac ships releases;
// with any one verb less it does not, so that none of them is too many.
func TestShippedRolesSufficeForARunAndNoVerbIsTooMany(t *testing.T) {
	s := newScene(t)
	s.pod(t, "live")
	g := shipped(t, "run")
	a := s.install(t, g)
	if wrong := a.errand(t); wrong != "" {
		t.Fatalf("with the roles as shipped: %s", wrong)
	}
	g = g.Split()
	for _, v := range g.Verbs() {
		t.Run("without "+v.Of(g), func(t *testing.T) {
			a.lose(t, g, v)
			wrong := a.errand(t)
			if wrong == "" {
				t.Error("the run succeeds all the same: the verb is superfluous")
			}
		})
	}
}

// The read-only roles suffice for a dry run, none of their verbs is too many,
// and a run that is told to release releases nothing with them (promise 5).
func TestShippedPlanRolesSufficeForADryRunAndForNothingElse(t *testing.T) {
	s := newScene(t)
	s.pod(t, "live")
	s.wreck(t)
	g := shipped(t, "plan")
	a := s.install(t, g)
	before := s.versions(t)
	result := a.run(t, reap.ExitDone, releaseNow+slowRule, "--dry-run")
	if got := result.Report.Summary.Planned; got != 4 {
		t.Errorf("%d releases are planned, want 4", got)
	}

	result = a.run(t, reap.ExitPartial, releaseNow+slowRule)
	checkNamesFailure(t, result)
	a.checkTrue(t, result.Report)
	if got := result.Report.Summary.Released; got != 0 {
		t.Errorf("the report says that %d were released", got)
	}
	if diff := cmp.Diff(before, s.versions(t)); diff != "" {
		t.Errorf("versions (-before +after):\n%s", diff)
	}

	g = g.Split()
	for _, v := range g.Verbs() {
		t.Run("without "+v.Of(g), func(t *testing.T) {
			a.lose(t, g, v)
			result, err := a.start(t, releaseNow+slowRule, "--dry-run").Wait()
			if err != nil {
				t.Fatal(err)
			}
			if result.ExitCode == reap.ExitDone {
				t.Error("the dry run succeeds all the same: the verb is superfluous")
			}
		})
	}
}

// A ledger of more than one ConfigMap is within the shipped rights too, which
// name every one that there can be.
func TestShippedRolesSufficeForALargeLedger(t *testing.T) {
	const entries = 10_001 // one more than a ConfigMap of the ledger has
	s := newScene(t)
	s.pod(t, "live")
	a := s.install(t, shipped(t, "run"))
	s.putEntries(t, "10.8.0.0/16", entries)
	const policy = policyHead + "dryRun: false\n"
	for range 2 { // the second has both to read
		result := a.run(t, reap.ExitDone, policy)
		if got := result.Report.Summary.Suspected; got != entries {
			t.Errorf("%d reservations are suspected, want %d", got, entries)
		}
	}
	if got := s.toReaper.Mutations()["create configmaps"]; got != 2 {
		t.Errorf("%d ConfigMaps were created, want 2", got)
	}
	if got := s.toReaper.Counts()["get configmaps"]; got < 3 {
		t.Errorf("%d ConfigMaps were read, want one and then both", got)
	}
}
