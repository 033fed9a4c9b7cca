package whereabouts

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Promise 2. A field from a later version of the plugin may say that the address is in use.
func TestUnknownFieldsAreNamed(t *testing.T) {
	for _, tt := range []struct {
		name, stored, entry, overlapping string // the unknown field
	}{
		{"as the plugin writes it", `{"podref":"default/web-0","ifname":"net1"}`, "", ""},
		{"with a claim", `{"podref":"default/web-0","ipamclaimref":"default/vm"}`, "", ""},
		{"a sandbox of an entry", `{"podref":"default/web-0","id":"c1"}`, "", "spec.id"},
		{"a sandbox of a reservation", `{"podref":"default/web-0","containerid":"c1"}`, "spec.allocations[7].containerid", ""},
		{"a new field", `{"podref":"default/web-0","ipamclaimref2":null}`, "spec.allocations[7].ipamclaimref2", "spec.ipamclaimref2"},
		{"a known field in another case", `{"PodRef":"default/web-0"}`, "spec.allocations[7].PodRef", "spec.PodRef"},
		{"the first of several", `{"z":1,"y":{"x":2},"podref":"default/web-0"}`, "spec.allocations[7].y", "spec.y"},
		{"a name that is written with escapes", `{"podr\u0065f":"default/web-0"}`, "", ""},
		{"an empty name", `{"":1}`, "spec.allocations[7].", "spec."},
		{"nothing", `{}`, "", ""},
		{"no object", `["podref"]`, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := ipPool{prefix: netip.MustParsePrefix("10.0.0.0/24")}
			if got := p.allocation("7", json.RawMessage(tt.stored)).UnknownField; got != tt.entry {
				t.Errorf("the entry has the unknown field %q, want %q", got, tt.entry)
			}
			var o object
			if err := kube.Decode([]byte(overlappingJSON("10.0.0.7", tt.stored, `{}`)), &o); err != nil {
				t.Fatal(err)
			}
			if got := overlappingPool(o, nil).Allocations[0].UnknownField; got != tt.overlapping {
				t.Errorf("the overlapping reservation has the unknown field %q, want %q", got, tt.overlapping)
			}
		})
	}
}

// Both backends use the settings of Pools, inspect included.
func TestUnknownFieldsAreIgnoredIfThePolicySaysSo(t *testing.T) {
	for setting, want := range map[UnknownFields]bool{"": true, HoldUnknownFields: true, IgnoreUnknownFields: false} {
		t.Run(string(setting), func(t *testing.T) {
			pool := poolJSON("10.0.0.0-24", "10.0.0.0/24", `"4": {"id":"c4","podref":"default/web-0","foo":1}`)
			reservation := overlappingJSON("10.0.0.4", `{"podref":"default/web-0","foo":1}`, `{}`)
			_, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": items(pool), "GET overlappingrangeipreservations": items(reservation)})
			s, p := Settings{UnknownFields: setting}, policy.Default()
			p.Backends[PoolsName] = policy.Backend{Settings: &s}
			offline, _ := overFiles(t, p, document(poolKind, pool), document(overlappingKind, reservation))
			listed := 0
			for _, b := range append(offline, NewPools(client, s, 4), NewOverlapping(client, s, 4)) {
				for pool, err := range b.List(t.Context()) {
					listed++
					if err != nil || (pool.Allocations[0].UnknownField != "") != want {
						t.Errorf("%s: %+v, %v, want an unknown field: %t", b.Name(), pool.Allocations, err, want)
					}
				}
			}
			if listed != 4 {
				t.Errorf("%d were listed, want each entry and each reservation", listed)
			}
		})
	}
}

// A later plugin adopts an entry by podref and ifname, and every ADD has an ifname.
func TestOnlyEntriesWithoutAnInterfaceAreNeverAdopted(t *testing.T) {
	for entry, want := range map[string]bool{
		`{"id":"c1","podref":"default/web-0"}`:             true,
		`{"id":"c1","podref":"default/web-0","ifname":""}`: true,
		`{"id":"c1"}`: true,
		`{"id":"c1","podref":"default/web-0","ifname":"net1"}`:                   false,
		`{"id":"c1","podref":"default/web-0","ipamclaimref":"default/vm"}`:       false,
		`{"id":"c1","podref":"default/web-0","Ifname":"net1"}`:                   false,
		`{"id":"c1","podref":"default/web-0","adoptedBy":{"anything":"at all"}}`: false,
		`{"id":"c1","podref":["default/web-0"]}`:                                 false,
	} {
		p := ipPool{prefix: netip.MustParsePrefix("10.0.0.0/24")}
		if a := p.allocation("7", json.RawMessage(entry)); a.NeverAdopted() != want {
			t.Errorf("%s: NeverAdopted is %t, want %t", entry, !want, want)
		}
	}
	// An ADD of any version that finds a reservation of its own pod leaves it.
	var o object
	if err := kube.Decode([]byte(overlappingJSON("10.0.0.7", `{"podref":"default/web-0","containerid":"c1"}`, `{}`)), &o); err != nil {
		t.Fatal(err)
	}
	if overlappingPool(o, nil).Allocations[0].NeverAdopted() {
		t.Error("an overlapping reservation is never adopted, want that left open")
	}
}
