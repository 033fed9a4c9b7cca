package whereabouts_test

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// A store is what the API server holds, in its own bytes: a reservation by its name, a pool without
// its allocations by its name, and each allocation by name/key. Outside the namespace of the pools,
// the namespace precedes the name.
//
// It lacks what every write to an object changes: its version, generation and field managers.
// Versions are separate.
type store struct {
	content  map[string]string
	reborn   map[string]string // content without UIDs and creation times of reservations
	versions map[string]string // of whole objects
}

// snapshot reads everything.
func (f *fixture) snapshot() kit.Store {
	f.Helper()
	return kit.StoreT(f, f.Cluster, kit.Pools, kit.Reservations)
}

// store reads everything.
func (f *fixture) store() store {
	f.Helper()
	taken := f.snapshot()
	born := maps.Clone(taken)
	for path, o := range born {
		o.Reborn = false
		born[path] = o
	}
	return store{named(born.Places()), named(taken.Places()), named(taken.Versions())}
}

// named replaces the paths of a snapshot with the names of a store.
func named(view map[string]string) map[string]string {
	all := make(map[string]string, len(view))
	for path, text := range view {
		parts := strings.SplitN(strings.TrimPrefix(path, kit.Pools.API+"/namespaces/"), "/", 3)
		name := strings.Replace(parts[2], " ", "/", 1)
		if parts[0] != cluster.PoolNamespace {
			name = parts[0] + "/" + name
		}
		all[name] = text
	}
	return all
}

// without returns the store as it must be after a run with these lines: without what was released.
// Nothing else was written, except for a reservation that was given back.
func (st store) without(lines []string) store {
	left := store{maps.Clone(st.content), nil, maps.Clone(st.versions)}
	for _, line := range lines {
		fields := strings.Fields(line)
		outcome := fields[len(fields)-1]
		if outcome == "released" || outcome == "returned" {
			delete(left.versions, fields[0])
		}
		if outcome != "released" {
			continue
		}
		delete(left.content, fields[0])
		if pool, key := cutLast(fields[0]); key != "" {
			delete(left.versions, pool)
		}
	}
	return left
}

// cutLast splits at the last slash.
func cutLast(text string) (before, after string) {
	i := strings.LastIndexByte(text, '/')
	if i < 0 {
		return text, ""
	}
	return text[:i], text[i+1:]
}

// wantStore fails the test unless the store has this content, and the objects in versions have
// these versions.
func (f *fixture) wantStore(want store) {
	f.Helper()
	got := f.store()
	kit.WantT(f, "of Whereabouts", want.content, got.content)
	for name, version := range want.versions {
		if got.versions[name] != version {
			f.Errorf("%s was written: its version was %s and is %q", name, version, got.versions[name])
		}
	}
}

// wantReborn fails the test unless the store is as it was, except for the UIDs and creation times
// of reservations.
func (f *fixture) wantReborn(want store) {
	f.Helper()
	kit.WantT(f, "but for births", want.reborn, f.store().reborn)
}

// owners returns who has what, as snapshot.Owners does.
func (f *fixture) owners() map[string]string {
	f.Helper()
	return f.snapshot().Owners()
}

// wantOwners fails the test unless owners returns this.
func (f *fixture) wantOwners(want map[string]string) {
	f.Helper()
	kit.WantT(f, "by owner", want, f.owners())
}

// nothing is what owners returns for an empty store.
var nothing = map[string]string{}

// ref returns Whereabouts' name for a pod of the shop.
func ref(pod string) string { return shop + "/" + pod }

// poolName returns the plugin's name for the pool of an unnamed network.
func poolName(cidr string) string { return strings.ReplaceAll(cidr, "/", "-") }

// text returns a value as JSON.
func text(of any) string {
	raw, err := json.Marshal(of)
	if err != nil {
		panic(err) // maps of strings always marshal
	}
	return string(raw)
}
