package whereabouts_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/snapshot"
)

// verdicts are allocations by "verdict reason outcome", in any order: "POOL IP" of an entry
// and the name of a reservation.
type verdicts map[string][]string

// What most allocations come to.
const (
	kept     = "inUse PodPresent kept"
	released = "orphan PodAbsent released"
)

// both returns an entry and the reservation of its ADD.
func both(pool, ip, reservation string) []string { return []string{pool + " " + ip, reservation} }

// sorted returns the verdicts in one order.
func (v verdicts) sorted() verdicts {
	all := verdicts{}
	for verdict, of := range v {
		all[verdict] = slices.Sorted(slices.Values(of))
	}
	return all
}

// released are the allocations that end so.
func (v verdicts) released() []string {
	var all []string
	for verdict, of := range v {
		if strings.HasSuffix(verdict, " released") {
			all = append(all, of...)
		}
	}
	return all
}

// policyAtOnce releases at once whatever is due.
const policyAtOnce = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ndryRun: false\n" +
	"gracePeriod: 0s\nminAge: 0s\nlimits: {maxFraction: 1}\n"

// run runs the binary under the policy and an addition to it.
func (f *fixture) run(addition string, args ...string) verdicts {
	f.Helper()
	report := reap.StartT(f, f.kubeconfig, policyAtOnce+addition, nil, args...).EndT(f, reap.ExitDone).Report
	all := verdicts{}
	for _, e := range report.Entries {
		name := strings.TrimPrefix(e.Pool, cluster.PoolNamespace+"/")
		if e.Backend == "whereabouts" {
			name += " " + e.IP
		}
		verdict := e.Decision + " " + e.Reason + " " + e.Outcome
		all[verdict] = append(all[verdict], name)
	}
	return all.sorted()
}

// A state is all that the cluster holds.
type state struct {
	stores   snapshot.Store
	versions map[string]string // of every object, those of the program included
}

// state reads it.
func (f *fixture) state() state {
	f.Helper()
	versions, err := f.Versions(f.Context())
	f.must(err)
	return state{snapshot.TakeT(f, f.Cluster, pools, reservations), versions}
}

// play demands these verdicts and no other write. First a dry run says the same and writes
// nothing at all (promise 5). Then a run releases exactly what the verdicts say, and leaves
// every other byte (promises 1, 6 and 7). A second run releases nothing.
func (f *fixture) play(addition string, want verdicts) {
	f.Helper()
	want = want.sorted()
	before := f.state()
	planned := f.run(addition, "--dry-run")
	if diff := cmp.Diff(want.outcome("released", "planned"), planned); diff != "" {
		f.Errorf("verdicts of a dry run (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.versions, f.state().versions); diff != "" {
		f.Errorf("a dry run wrote (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(want, f.run(addition)); diff != "" {
		f.Errorf("verdicts (-want +got):\n%s", diff)
	}
	after := f.state()
	f.wantOnlyReleased(before, after, want.released())
	if again := f.run(addition).released(); len(again) > 0 {
		f.Errorf("a second run released %q", again)
	}
	if diff := cmp.Diff(reap.StoreObjects(after.versions), reap.StoreObjects(f.state().versions)); diff != "" {
		f.Errorf("a second run wrote (-before +after):\n%s", diff)
	}
}

// outcome returns the verdicts with another outcome in place of one.
func (v verdicts) outcome(old, now string) verdicts {
	all := verdicts{}
	for verdict, of := range v {
		all[strings.Replace(verdict, " "+old, " "+now, 1)] = of
	}
	return all
}

// wantOnlyReleased fails the test unless the allocations are gone, and everything else is
// the same: byte for byte in an object that lost nothing, and all but what a write changes
// in a pool that lost an entry.
func (f *fixture) wantOnlyReleased(before, after state, released []string) {
	f.Helper()
	want := before.stores.Places()
	written := map[string]bool{}
	for path, o := range before.stores {
		if o.Resource == reservations && slices.Contains(released, o.Name) {
			delete(want, path)
			written[path] = true
		}
		for _, key := range keysOf(o, released) {
			delete(want, path+" "+key)
			written[path] = true
		}
	}
	snapshot.WantT(f, "after the release", want, after.stores.Places())
	for path, o := range before.stores {
		if !written[path] && !bytes.Equal(o.Raw, after.stores[path].Raw) {
			f.Errorf("%s was written:\n%s\n%s", path, o.Raw, after.stores[path].Raw)
		}
	}
	others := func(st state) map[string]string {
		left := reap.StoreObjects(st.versions)
		maps.DeleteFunc(left, func(key, _ string) bool { return strings.Contains(key, ".whereabouts.cni.cncf.io/") })
		return left
	}
	if diff := cmp.Diff(others(before), others(after)); diff != "" {
		f.Errorf("other objects were written (-before +after):\n%s", diff)
	}
}

// keysOf returns the keys of the entries of a pool that are among the allocations.
func keysOf(o snapshot.Object, allocations []string) []string {
	var pool struct {
		Spec struct {
			Range       string
			Allocations map[string]json.RawMessage
		}
	}
	if o.Resource != pools || json.Unmarshal(o.Raw, &pool) != nil {
		return nil
	}
	var keys []string
	for key := range pool.Spec.Allocations {
		if slices.Contains(allocations, o.Name+" "+snapshot.Address(pool.Spec.Range, key)) {
			keys = append(keys, key)
		}
	}
	return keys
}
