package reaper_test

import (
	"context"
	"errors"
	"iter"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

const malformed = `ttl .spec.ttl: "7d" is not how long to keep an address`

// undecoded returns the object as one that cannot be decoded.
func undecoded(o reservedIP) reservedIP {
	o.Undecoded = malformed
	return o
}

// Promise 2, 9. An object that cannot be decoded protects what it may name, for good. It
// protects nothing else, and the report names it.
func TestObjectThatCannotBeDecodedHoldsWhatItMayName(t *testing.T) {
	in := func(namespaces ...string) reservedIP { return reservedIP{Key: "ns/a", Namespaces: namespaces} }
	const mayName = fakeStorePool + " ns/a may name it: " + malformed
	for _, tt := range []struct {
		name   string
		object reservedIP
		held   bool
	}{
		{"its address", protecting("a", nil, ip2), true},
		{"its pod", protectingPod("a", nil, "gone-1"), true},
		{"the namespace of the pod", in("default"), true},
		{"one of several namespaces", in("prod", "default"), true},
		{"everything", reservedIP{Key: "ns/a", All: true}, true},
		{"another address", protecting("a", nil, netip.MustParseAddr("10.0.0.3")), false},
		{"another pod", protectingPod("a", nil, "gone-2"), false},
		{"another namespace", in("prod"), false},
		{"nothing", in(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _, _ := protectedHarness(t, undecoded(tt.object))
			report, failures := h.partial(t)
			const says = "reservedIPs: " + fakeStorePool + " ns/a: " + malformed
			equal(t, "failures", failures, []string{says})
			equal(t, "warning", report.Warnings[0], says)
			equal(t, "statuses", statuses(report), map[string]string{"memory": "ok", "reservedIPs": "partial: " + fakeStorePool + " ns/a: " + malformed})
			equal(t, "verdict on the object", reported(t, report, "ns/a"), decision{judge.Held, judge.Unreadable, malformed})
			want := decision{judge.Orphaned, judge.PodAbsent, ""}
			if tt.held {
				want = decision{judge.Held, judge.Protected, mayName}
			}
			equal(t, "verdict", reported(t, report, "2"), want)
			equal(t, "verdict on the living", reported(t, report, "1"), decision{judge.InUse, judge.PodPresent, ""})
		})
	}
}

// Promise 2. An allocation that names no pod for certain may be of any namespace.
func TestObjectThatCannotBeDecodedHoldsAllocationsWithoutAPod(t *testing.T) {
	for name, owner := range map[string]ipam.Allocation{
		"no pod":       {Owner: ipam.Owner{Sandbox: "s1"}},
		"inferred pod": {Owner: ipam.Owner{Pod: app("gone-1").Pod, Sandbox: "s1"}, Inferred: true},
	} {
		t.Run(name, func(t *testing.T) {
			owner.Key, owner.Token, owner.IP = "2", "t", ip2
			s := &fakeStore{}
			s.add(undecoded(reservedIP{Key: "ns/a", Namespaces: []string{"prod"}}))
			h := newHarness(fixedStore{poolOf(owner)}, s)
			h.policy.Pods.Unnamed = "release"
			h.addPods(t, nil)
			report, _ := h.partial(t)
			equal(t, "verdict", reported(t, report, "2").Reason, judge.Protected)
		})
	}
}

// An object that cannot be decoded keeps no other object: every store was listed.
func TestObjectThatCannotBeDecodedKeepsNoOther(t *testing.T) {
	h, _, s := protectedHarness(t, undecoded(reservedIP{Key: "ns/a", Namespaces: []string{"prod"}}), deletable(protecting("b", hours(0), ip2)))
	rep, _ := h.partial(t)
	equal(t, "outcomes", outcomes(rep), map[string]report.Outcome{
		"1": report.Kept, "2": report.Released, "ns/a": report.Kept, "ns/b": report.Released,
	})
	equal(t, "objects left", s.keys(), []string{"ns/a"})
}

// A silentStore is a fakeStore that does not say what an object may name.
type silentStore struct{ *fakeStore }

func (s silentStore) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		yield(ipam.Pool{}, &ipam.ObjectError{Object: "object ns/a", Err: errors.New(malformed)})
	}
}

// Promise 2. If it is unknown what an object may name, everything is held.
func TestObjectOfUnknownMeaningHoldsEverything(t *testing.T) {
	h, _, s := protectedHarness(t)
	h.backends[1] = silentStore{s}
	report, _ := h.partial(t)
	equal(t, "verdict", reported(t, report, "2"), decision{judge.Held, judge.Protected, "reservedIPs could not be read: object ns/a: " + malformed})
}
