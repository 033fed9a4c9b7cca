package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each pod has an entry, a tenth more is stale, and each address is in the range of its
// pool, there alone.
func TestEntriesAreThoseOfPodsAndATenthMore(t *testing.T) {
	for _, s := range []size{10, 1000, 3999, 40_000} {
		live, stale := 0, 0
		addresses, pods := map[string]bool{}, map[string]bool{}
		for e := range entry(s.total()) {
			if e.stale() {
				stale++
			} else {
				live++
			}
			if !poolRange(e.pool()).Contains(e.ip()) || e.pool() >= s.pools() || e.offset() >= 1<<(32-poolBits)-1 {
				t.Fatalf("%d pods: entry %d has %v in pool %d of %d", s, e, e.ip(), e.pool(), s.pools())
			}
			addresses[e.ip().String()], pods[e.podRef()] = true, true
		}
		if live != int(s) || stale != s.stale() {
			t.Errorf("%d pods: %d live and %d stale entries", s, live, stale)
		}
		if len(addresses) != s.total() || len(pods) != s.total() {
			t.Errorf("%d pods: %d addresses and %d pods of %d entries", s, len(addresses), len(pods), s.total())
		}
	}
}

func TestFlagsNameSizesAndParts(t *testing.T) {
	got, err := sizes("10, 2000", mostPods)
	if diff := cmp.Diff([]size{10, 2000}, got); diff != "" || err != nil {
		t.Errorf("sizes: %v (-want +got):\n%s", err, diff)
	}
	for _, list := range []string{"", "9", "200001", "10,x", "10,"} {
		if got, err := sizes(list, mostPods); err == nil {
			t.Errorf("sizes(%q) = %v", list, got)
		}
	}
	if got, err := sizes("272728", most(map[string]bool{"calico": true})); err != nil || len(got) != 1 {
		t.Errorf("the largest cluster of Calico's: %v, %v", got, err)
	}
	if got, err := sizes("272728", most(map[string]bool{"calico": true, "run": true})); err == nil {
		t.Errorf("a cluster that is too large for a run: %v", got)
	}
	some, err := parts("plan,guest")
	if diff := cmp.Diff(map[string]bool{"plan": true, "guest": true}, some); diff != "" || err != nil {
		t.Errorf("parts: %v (-want +got):\n%s", err, diff)
	}
	for _, list := range []string{"", "plan,", "plans"} {
		if _, err := parts(list); !errors.Is(err, errNoParts) {
			t.Errorf("parts(%q): %v", list, err)
		}
	}
	if _, err := parts("plan,calico-peers"); !errors.Is(err, errNoDatastore) {
		t.Errorf("peers without a datastore: %v", err)
	}
}
