package reaper

import (
	"reflect"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// someFacts returns Facts with every field set.
func someFacts() *Facts {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	pool := Pool{Name: "pool", Allocations: []Allocation{{Key: "1", Group: "g", Owner: Owner{Sandbox: "s"}}}}
	inv := Inventory{Listings: []Listing{{Backend: "store", Pools: []Pool{pool}}}, ended: now}
	census := NewCensus(now, []Pod{{Ref: PodRef{"default", "web"}}}, []StatefulSet{{Namespace: "default", Name: "db"}},
		Node{Name: "n1"}, Node{Name: "n2", Ready: true, Since: now}).
		withMachines([]VirtualMachine{{Namespace: "default", Name: "vm", TooMuch: true}})
	ledger := Ledger{seen: ledgerTable[int64]{{value: now.Unix()}}}
	return NewFacts(now, policy.Default(), inv, census, ledger)
}

// Promise 4. The second look must get every field of Facts and of Census. The test
// fails if a field is added and not carried over.
func TestSecondLookHasAllFactsOfTheFirst(t *testing.T) {
	first := someFacts()
	first.unclaimed = true
	first.census.fresh, first.census.sandboxes = map[PodRef]Reading{{"default", "old"}: {}}, sandboxList{true, nil}
	for _, facts := range []reflect.Value{reflect.ValueOf(*first), reflect.ValueOf(first.census)} {
		for i := range facts.NumField() {
			if facts.Field(i).IsZero() {
				t.Errorf("someFacts does not set %s of %s", facts.Type().Field(i).Name, facts.Type())
			}
		}
	}

	later := first.now.Add(time.Second)
	pods := []Pod{{Ref: PodRef{"default", "new"}}}
	sandboxes := sandboxList{true, []string{"new"}}
	fresh := map[PodRef]Reading{{"default", "web"}: {Presence: Absent, Began: later}}
	for _, tt := range []struct {
		name   string
		census Census
		differ func(*Census) // from the first census
	}{
		{"all pods were listed", first.census.relisted(later, pods, sandboxes), func(c *Census) {
			c.population, c.sandboxes, c.fresh = newPopulation(later, pods), sandboxes, nil
		}},
		{"some pods were read", first.census.With(fresh), func(c *Census) { c.fresh = fresh }},
	} {
		want := *first
		tt.differ(&want.census)
		if got := first.again(tt.census); !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: the facts of the second look are %+v, want those of the first but for the pods: %+v", tt.name, *got, want)
		}
	}
}
