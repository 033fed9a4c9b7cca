package whereabouts_test

import (
	"slices"
	"testing"
)

// Versions before 0.8 wrote no interface, and adopted no entry. Today's versions adopt the entry of
// the same pod and interface. So no pod ever gets an entry without an interface again.
func TestEntryWithoutAnInterfaceIsNeverAdopted(t *testing.T) {
	f := newFixture(t)
	f.writePool("10.0.0.0-24", "10.0.0.0/24", `{
		"1":{"id":"a","podref":"shop/web-0"},
		"2":{"id":"b","podref":"shop/web-1","ifname":"net1"}}`)
	before := f.store().content["10.0.0.0-24/1"]
	f.wantAddresses(f.add(lan, "web-0"), "10.0.0.3")
	f.wantAddresses(f.add(lan, "web-1"), "10.0.0.2")
	if now := f.store().content["10.0.0.0-24/1"]; now != before {
		t.Errorf("the entry is now %s, want %s", now, before)
	}
	var never []string
	for _, a := range f.listed() {
		if a.NeverAdopted() {
			never = append(never, a.IP.String())
		}
	}
	if !slices.Equal(never, []string{"10.0.0.1"}) {
		t.Errorf("never adopted are %q, want the entry of 10.0.0.1 alone", never)
	}
}

// An ADD leaves a reservation of its own pod unchanged, for any interface, and the pod relies on
// it. So a reservation without an interface may be in use again.
func TestReservationWithoutAnInterfaceIsAdopted(t *testing.T) {
	f := newFixture(t)
	f.write("overlappingrangeipreservations", `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation",
		"metadata":{"name":"10.0.0.1"},"spec":{"podref":"shop/web-0","containerid":"a"}}`)
	before := f.store()
	f.wantAddresses(f.add(lan, "web-0"), "10.0.0.1")
	if now := f.store(); now.versions["10.0.0.1"] != before.versions["10.0.0.1"] {
		t.Errorf("the reservation is now %s, want it untouched", now.content["10.0.0.1"])
	}
	listed := f.listed()
	if len(listed) != 2 {
		t.Errorf("%d were listed, want the entry and the reservation", len(listed))
	}
	for _, a := range listed {
		if a.NeverAdopted() {
			t.Errorf("%s is never adopted, want that left open", a.Key)
		}
	}
}
