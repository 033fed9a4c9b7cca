package whereabouts

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// poolJSON returns a pool of kube-system with entries.
func poolJSON(name, cidr, entries string) string {
	return fmt.Sprintf(`{"metadata": {"namespace": "kube-system", "name": %q}, "spec": {"range": %q, "allocations": {%s}}}`, name, cidr, entries)
}

// groupsOf returns the group of each allocation, by the keys of pool and allocation.
func groupsOf(t *testing.T, b ipam.Backend) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for pool, err := range b.List(t.Context()) {
		if err != nil {
			continue // a pool that cannot be read
		}
		for _, a := range pool.Allocations {
			all[pool.Name+" "+a.Key] = a.Group
		}
	}
	return all
}

// An entry and the overlapping reservation from the same ADD are released together.
func TestEntryAndItsOverlappingReservationAreOneGroup(t *testing.T) {
	const web, web1 = `{"id":"c1","podref":"default/web-0","ifname":"net1"}`, `{"id":"c2","podref":"default/web-1","ifname":"net1"}`
	const spec = `{"podref":"default/web-0","ifname":"net1"}`
	plainPool := poolJSON("10.0.0.0-24", "10.0.0.0/24", `"4": `+web)
	for _, tt := range []struct {
		name        string
		pools       []string
		object      string // the overlapping reservation
		spec        string
		annotations string
		want        string // the entry that is its sibling; empty: none
	}{
		{"of one ADD", []string{plainPool}, "10.0.0.4", spec, `{}`, "kube-system/10.0.0.0-24 4"},
		{"of a version without interfaces", []string{plainPool}, "10.0.0.4", `{"podref":"default/web-0","containerid":"c1"}`, `{}`,
			"kube-system/10.0.0.0-24 4"},
		{"of another pod", []string{poolJSON("10.0.0.0-24", "10.0.0.0/24", `"4": `+web1)}, "10.0.0.4", spec, `{}`, ""},
		{"of another address", []string{poolJSON("10.0.0.0-24", "10.0.0.0/24", `"5": `+web)}, "10.0.0.4", spec, `{}`, ""},
		{"of a named network", []string{poolJSON("blue-10.0.0.0-24", "10.0.0.0/24", `"4": `+web)}, "blue-10.0.0.4", spec, `{}`,
			"kube-system/blue-10.0.0.0-24 4"},
		{"of another network", []string{poolJSON("green-10.0.0.0-24", "10.0.0.0/24", `"4": `+web)}, "blue-10.0.0.4", spec, `{}`, ""},
		{"of a node slice", []string{poolJSON("node-1-10.0.0.0-28", "10.0.0.0/28", `"4": `+web)}, "10.0.0.4", spec, `{}`,
			"kube-system/node-1-10.0.0.0-28 4"},
		{"the network is exact in one pool", []string{poolJSON("blue-10.0.0.0-24", "10.0.0.0/24", `"4": `+web), plainPool}, "10.0.0.4", spec, `{}`,
			"kube-system/10.0.0.0-24 4"},
		{"a range that is not masked", []string{poolJSON("10.0.0.0-24", "10.0.0.3/24", `"1": `+web)}, "10.0.0.4", spec, `{}`, "kube-system/10.0.0.0-24 1"},
		{"below the range as it is written", []string{poolJSON("10.0.0.0-24", "10.0.0.8/24", `"4": `+web)}, "10.0.0.4", spec, `{}`, ""},
		{"interrupted", []string{plainPool}, "10.0.0.4", `{"podref":"_ip-reaper/_released"}`, `{"ip-reaper/spec":"{\"podref\":\"default/web-0\"}"}`,
			"kube-system/10.0.0.0-24 4"},
		{"beside a pool that cannot be read", []string{`{"metadata": {"namespace": "kube-system", "name": "x"}, "spec": 1}`, plainPool}, "10.0.0.4", spec, `{}`,
			"kube-system/10.0.0.0-24 4"},
		{"the reservation names no pod", []string{poolJSON("10.0.0.0-24", "10.0.0.0/24", `"4": {"id":"c1","podref":"web-0"}`)}, "10.0.0.4", `{"podref":"web-0"}`, `{}`, ""},
		{"the reservation is unreadable", []string{plainPool}, "10.0.0.4", `{"podref":7}`, `{}`, ""},
		{"the entry is unreadable", []string{poolJSON("10.0.0.0-24", "10.0.0.0/24", `"4": {"id":7,"podref":"default/web-0"}`)}, "10.0.0.4", spec, `{}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stored := overlappingJSON(tt.object, tt.spec, tt.annotations)
			_, client := newAPI(t, map[string]http.HandlerFunc{
				"GET ippools": items(tt.pools...), "GET overlappingrangeipreservations": items(stored),
			})
			entries := groupsOf(t, NewPools(client, Settings{}, atOnce))
			reservations := groupsOf(t, NewOverlapping(client, Settings{}, atOnce))
			got := reservations["kube-system/"+tt.object+" "+tt.object]
			if got != entries[tt.want] || (got != "") != (tt.want != "") {
				t.Errorf("the group is %q, want that of %q among %q", got, tt.want, entries)
			}

			documents := []ipam.Document{document("OverlappingRangeIPReservation", stored)}
			for _, pool := range tt.pools {
				documents = append(documents, document("IPPool", pool))
			}
			found, _ := overFiles(t, policy.Default(), documents...)
			if diff := cmp.Diff(reservations, groupsOf(t, found[len(found)-1])); diff != "" {
				t.Errorf("offline (-want +got):\n%s", diff)
			}
		})
	}
}

// Two allocations share a group only if pool, key and podref are the same.
func TestGroupsOfEntriesDiffer(t *testing.T) {
	_, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": items(
		poolJSON("10.0.0.0-24", "10.0.0.0/24", `"1": {"podref":"a/b"}, "2": {"podref":"a/b"}, "11": {"podref":"a/b"}, "3": {"podref":"1 a/b"},
			"4": {"id":"c1"}, "5": {"podref":"b"}, "x": {"podref":"a/b"}, "6": 6`),
		poolJSON("10.0.0.0-25", "10.0.0.0/25", `"1": {"podref":"a/b"}`),
	)})
	seen := make(map[string]string)
	for place, group := range groupsOf(t, NewPools(client, Settings{}, atOnce)) {
		if group == "" {
			continue
		}
		if other, twice := seen[group]; twice {
			t.Errorf("%s and %s have the group %q", other, place, group)
		}
		seen[group] = place
	}
	if len(seen) != 5 {
		t.Errorf("groups %q, want one for each of the five readable entries that name a pod", seen)
	}
}

// keyOf is the inverse of addressAt.
func FuzzKeyOf(f *testing.F) {
	f.Add("10.0.0.3/24", "7")
	f.Add("fd00::/64", "18446744073709551615")
	f.Fuzz(func(t *testing.T, text, key string) {
		prefix, err := parseRange(text)
		if err != nil || prefix.Addr().Is4In6() {
			return
		}
		if ip, err := addressAt(prefix, key); err == nil && keyOf(prefix, ip) != key {
			t.Errorf("keyOf(%s, %s) = %q, want %q", prefix, ip, keyOf(prefix, ip), key)
		}
	})
}
