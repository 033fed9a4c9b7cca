package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/big"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 2. A run first sees the allocation of gone-1 ownerless at noon. It is
// released at the wanted time, not before.
func TestReservedIPKeepsUntilItsTTLIsOver(t *testing.T) {
	const never = -1
	const held = fakeStorePool + " ns/a keeps it "
	wrapped := netip.MustParseAddr("::ffff:10.0.0.2")
	for _, tt := range []struct {
		name    string
		objects []reservedIP
		grace   time.Duration
		want    time.Duration // after noon
		note    string        // at noon, if it is held
	}{
		{"by address", []reservedIP{protecting("a", hours(1), ip2)}, 0, time.Hour, held + "until 2026-03-01T13:00:00Z"},
		{"by pod", []reservedIP{protectingPod("a", hours(1), "gone-1")}, 0, time.Hour, held + "until 2026-03-01T13:00:00Z"},
		{"by an address in IPv6 form", []reservedIP{protecting("a", hours(1), wrapped)}, 0, time.Hour, held + "until 2026-03-01T13:00:00Z"},
		{"of another address", []reservedIP{protecting("a", nil, netip.MustParseAddr("10.0.0.3"))}, 0, 0, ""},
		{"of another pod", []reservedIP{protectingPod("a", nil, "gone-2")}, 0, 0, ""},
		{"for good", []reservedIP{protecting("a", nil, ip2)}, 0, never, held + "for good"},
		{"since the pod went", []reservedIP{podDeletedAt(protecting("a", hours(1), ip2), noon.Add(-45*time.Minute))}, 0, 15 * time.Minute,
			held + "until 2026-03-01T12:15:00Z"},
		{"since the pod went, long ago", []reservedIP{podDeletedAt(protecting("a", hours(1), ip2), noon.Add(-time.Hour))}, 0, 0, ""},
		{"by several, the longest first", []reservedIP{protecting("a", hours(3), ip2), protectingPod("b", hours(1), "gone-1")}, 0, 3 * time.Hour,
			held + "until 2026-03-01T15:00:00Z"},
		{"by several, one for good", []reservedIP{protecting("b", hours(1), ip2), protecting("a", nil, ip2), protecting("c", hours(2), ip2)}, 0, never, held + "for good"},
		{"shorter than the grace period", []reservedIP{protecting("a", hours(1), ip2)}, 2 * time.Hour, 2 * time.Hour, ""},
		{"a little shorter than the grace period, which a jitter cuts short", []reservedIP{protecting("a", new(14*time.Minute+40*time.Second), ip2)},
			15 * time.Minute, 15 * time.Minute, ""},
		{"longer than the grace period", []reservedIP{protecting("a", hours(2), ip2)}, time.Hour, 2 * time.Hour, held + "until 2026-03-01T14:00:00Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _, _ := protectedHarness(t, tt.objects...)
			h.policy.GracePeriod = &policy.Duration{Duration: tt.grace}
			rep := h.run(t)
			want := decision{judge.Held, judge.Protected, tt.note}
			switch {
			case tt.want == 0:
				want = decision{judge.Orphaned, judge.PodAbsent, ""}
			case tt.note == "":
				want = decision{judge.Suspected, judge.PodAbsent, ""}
			}
			equal(t, "verdict at noon", reported(t, rep, "2"), want)
			equal(t, "verdict on the living", reported(t, rep, "1"), decision{judge.InUse, judge.PodPresent, ""})
			if tt.want > 0 {
				equal(t, "due", *entryOf(t, rep, "2").Due, noon.Add(tt.want))
				h.now = noon.Add(tt.want - early(tt.grace) - time.Second)
				equal(t, "outcome a second before", outcomes(h.run(t))["2"], report.Kept)
				h.now = noon.Add(tt.want)
				equal(t, "outcome in time", outcomes(h.run(t))["2"], report.Released)
			}
			if tt.want == never {
				h.now = noon.Add(10 * 365 * 24 * time.Hour)
				equal(t, "verdict years later", reported(t, h.run(t), "2"), want)
			}
		})
	}
}

// Promise 2, 9, 11. If the objects cannot be listed, any address may be protected.
func TestNothingIsReleasedIfReservedIPsCannotBeRead(t *testing.T) {
	h, m, s := protectedHarness(t, protecting("a", hours(1), netip.MustParseAddr("10.9.9.9")))
	before := contentsOf(t, m)
	s.hook = func(string) error { return errForbidden }
	rep, failures := h.partial(t)
	equal(t, "failures", failures, []string{"reservedIPs: " + errForbidden.Error()})
	equal(t, "statuses", statuses(rep), map[string]string{"memory": "ok", "reservedIPs": "failed: " + errForbidden.Error()})
	equal(t, "verdict", reported(t, rep, "2"), decision{judge.Held, judge.Protected, "reservedIPs could not be read: " + errForbidden.Error()})
	equal(t, "verdict on the living", reported(t, rep, "1"), decision{judge.InUse, judge.PodPresent, ""})
	equal(t, "store", contentsOf(t, m), before)

	s.hook = nil
	equal(t, "outcome once they can", outcomes(h.run(t))["2"], report.Released)
}

// Promise 2. A policy that disables the backend does not say that no address is
// protected.
func TestDisabledReservedIPsKeep(t *testing.T) {
	h, _, _ := protectedHarness(t, protecting("a", nil, ip2))
	h.policy.Backends[reservedIPsName] = policy.Backend{Enabled: policy.Off}
	equal(t, "verdict", reported(t, h.run(t), "2").Reason, judge.Protected)
}

// Promise 8. A release that a crash cut short is finished. The address was not
// protected when the release began.
func TestInterruptedReleaseIsFinishedAlthoughTheAddressIsReserved(t *testing.T) {
	for _, broken := range []bool{false, true} {
		h, _ := interruptedHarness(t)
		s := &fakeStore{}
		s.add(protecting("a", nil, ip2))
		if broken {
			s.hook = func(string) error { return errForbidden }
		}
		h.backends = append(h.backends, s)
		rep, err := reaper.Run(t.Context(), h.options())
		if partial := (*report.PartialError)(nil); errors.As(err, &partial) != broken {
			t.Errorf("run: %v", err)
		}
		equal(t, "outcome", outcomes(rep)["10.0.0.2"], report.Released)
	}
}

// Promise 2. The decisions on the objects themselves, as long as they protect an
// address.
func TestDecisionsOnReservedIPs(t *testing.T) {
	free := netip.MustParseAddr("10.9.9.9")
	reserved := func(note string) decision { return decision{judge.Held, judge.Protected, note} }
	for _, tt := range []struct {
		name   string
		object reservedIP
		change func(*harness)
		want   decision
	}{
		{"a pod shows the address", deletable(protecting("a", hours(0), ip1)), nil,
			decision{judge.InUse, judge.AddressInUse, "10.0.0.1 is shown by pod default/live-1"}},
		{"the pod is there", deletable(protectingPod("a", hours(0), "live-1")), nil, decision{judge.InUse, judge.PodPresent, ""}},
		{"the pod comes back", deletable(protectingPod("a", hours(0), "db-0")), func(h *harness) {
			h.pods.AddSets(census.StatefulSet{Namespace: "default", Name: "db", Replicas: 1})
		}, decision{judge.Held, judge.Retained, "its StatefulSet brings the pod back"}},
		{"it has no TTL", deletable(protecting("a", nil, free)), nil, reserved("it has no TTL")},
		{"the policy does not delete", protecting("a", hours(0), free), nil, reserved("the policy does not allow its release")},
		{"its time is not over", deletable(protecting("a", hours(1), free)), nil, reserved("until 2026-03-01T13:00:00Z")},
		{"it names nothing", deletable(protecting("a", hours(0))), nil,
			decision{judge.Held, judge.OwnerUnknown, "it names neither an address nor a pod"}},
		{"a rule holds the address that it protects", deletable(protecting("a", hours(0), ip2)), func(h *harness) {
			h.policy.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"gone-1"}}, Hold: true}}
		}, reserved("10.0.0.2 is held: RuleHold")},
		{"the address that it protects is in use", deletable(protectingPod("a", hours(0), "gone-1")), func(h *harness) {
			h.pods.Add(showing(other, ip2))
		}, decision{judge.InUse, judge.AddressInUse, "10.0.0.2 is in use: AddressInUse"}},
		{"a rule about its kind holds it", deletable(protecting("a", hours(0), free)), func(h *harness) {
			h.policy.Rules = []policy.Rule{{Match: policy.Match{Backends: []string{reservedIPsName}}, Hold: true}}
		}, decision{judge.Held, judge.RuleHold, "held by rules[0]: backends reservedIPs"}},
		{"its pod is out of scope", deletable(protectingPod("a", hours(0), "gone-2")), func(h *harness) {
			h.policy.Namespaces.Exclude = []string{"default"}
		}, decision{judge.Held, judge.OutOfScope, "namespaces.exclude has default"}},
		{"the address that it protects waits", deletable(protecting("a", hours(0), ip2)), func(h *harness) {
			h.policy.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"gone-1"}}, GracePeriod: &policy.Duration{Duration: time.Hour}}}
		}, decision{judge.Suspected, judge.PodAbsent, ""}},
		{"its time is over", deletable(protecting("a", hours(0), free)), nil, decision{judge.Orphaned, judge.PodAbsent, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _, s := protectedHarness(t, tt.object)
			if tt.change != nil {
				tt.change(h)
			}
			report := h.run(t)
			equal(t, "verdict", reported(t, report, "ns/a"), tt.want)
			stays := tt.want.Verdict != judge.Orphaned
			equal(t, "it is still there", slices.Contains(s.keys(), "ns/a"), stays)
		})
	}
}

// Promise 2. What an object protects may be in a store that could not be listed.
func TestObjectStaysWhileAStoreCannotBeListed(t *testing.T) {
	h, _, s := protectedHarness(t, deletable(protecting("a", hours(0), ip9)))
	all := h.backends
	h.backends = append(all, scriptedStore{name: "broken", steps: []step{{err: errForbidden}}})
	rep, _ := h.partial(t)
	equal(t, "verdict", reported(t, rep, "ns/a"), held(judge.Protected, "not every store could be listed"))
	h.backends = all
	h.run(t)
	equal(t, "objects left once it can", s.keys(), nil)
}

const malformed = `ttl .spec.ttl: "7d" is not how long to keep an address`

// undecoded returns the object as one that cannot be decoded.
func undecoded(o reservedIP) reservedIP {
	o.Undecoded = malformed
	return o
}

// Promise 2, 7, 9. An object that cannot be decoded protects what it may name, for good. It
// protects nothing else, fails no run, and the report names it.
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
		{"everything", reservedIP{Key: "ns/a", All: true}, true},
		{"another address", protecting("a", nil, netip.MustParseAddr("10.0.0.3")), false},
		{"another pod", protectingPod("a", nil, "gone-2"), false},
		{"another namespace", in("prod"), false},
		{"nothing", in(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _, _ := protectedHarness(t, undecoded(tt.object))
			report := h.run(t)
			const says = fakeStorePool + " ns/a: " + malformed
			equal(t, "warning", report.Warnings[0], says)
			equal(t, "objects", report.Backends[1].Undecoded, []string{says})
			equal(t, "statuses", statuses(report), map[string]string{"memory": "ok", "reservedIPs": "ok"})
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
	s := &fakeStore{}
	s.add(undecoded(reservedIP{Key: "ns/a", Namespaces: []string{"prod"}}))
	h := newHarness(fixedStore{poolOf(ipam.Allocation{Key: "2", Token: "t", IP: ip2, Owner: ipam.Owner{Sandbox: "s1"}})}, s)
	h.policy.Pods.Unnamed = "release"
	h.addPods(t, nil)
	equal(t, "verdict", reported(t, h.run(t), "2").Reason, judge.Protected)
}

// An object that cannot be decoded keeps no other object: every store was listed.
func TestObjectThatCannotBeDecodedKeepsNoOther(t *testing.T) {
	h, _, s := protectedHarness(t, undecoded(reservedIP{Key: "ns/a", Namespaces: []string{"prod"}}), deletable(protecting("b", hours(0), ip2)))
	equal(t, "outcomes", outcomes(h.run(t)), map[string]report.Outcome{
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
	report, failures := h.partial(t)
	equal(t, "failures", failures, []string{"reservedIPs: object ns/a: " + malformed})
	equal(t, "verdict", reported(t, report, "2"), decision{judge.Held, judge.Protected, "reservedIPs could not be read: object ns/a: " + malformed})
}

// leakyPool returns a pool of two addresses, one of which has leaked. Its parts are
// protected by these objects; empty: by none.
func leakyPool(name, leaked, whole string) ipam.Pool {
	a := webAllocation()
	a.Protected = leaked
	return ipam.Pool{Name: name, Network: "-", Range: netip.MustParsePrefix("10.0.0.0/30"), Capacity: big.NewInt(2),
		Protected: whole, Allocations: []ipam.Allocation{a}}
}

// Promise 7. A run that can release nothing from a pool says so, and names the object.
func TestPoolOfWhichEverythingIsProtectedIsAWarning(t *testing.T) {
	const by = "excluded by the network attachment shop/lan"
	const says = "nothing is released from store one, because every address is protected: " + by
	var six []ipam.Pool
	for n := range 7 {
		six = append(six, leakyPool(fmt.Sprint("p", n), by, by))
	}
	noRange := leakyPool("one", by, by)
	noRange.Range = netip.Prefix{}
	live := leakyPool("one", by, by)
	live.Allocations[0].Owner.Pod = app("live-1").Pod
	for _, tt := range []struct {
		name  string
		pools []ipam.Pool
		want  []string
	}{
		{"a pool that is protected as a whole", []ipam.Pool{leakyPool("one", by, by)}, []string{says}},
		{"many", six, []string{"nothing is released from store p0, store p1, store p2, store p3, store p4 and 2 more, because every address is protected: " + by}},

		// All other leaks of these pools are released.
		{"a pool of which only the leaked address is protected", []ipam.Pool{leakyPool("one", by, "")}, nil},
		{"a pool without a leak", []ipam.Pool{live}, nil},
		{"an object that gives no addresses", []ipam.Pool{noRange}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var steps []step
			for _, pool := range tt.pools {
				steps = append(steps, step{pool: pool})
			}
			h := newHarness(scriptedStore{name: "store", steps: steps})
			h.pods.Add(census.Pod{Ref: app("live-1").Pod})
			report := h.run(t)
			equal(t, "warnings", report.Warnings, tt.want)
			for i, p := range report.Pools {
				want := ""
				if tt.want != nil {
					want = tt.pools[i].Protected
				}
				equal(t, "the object in the report of "+p.Name, p.ProtectedBy, want)
			}
		})
	}
}

// An object that may name every address protects each pool as a whole.
func TestReservedIPsMayProtectAPoolAsAWhole(t *testing.T) {
	h, _, _ := protectedHarness(t, undecoded(reservedIP{Key: "ns/a", All: true}))
	rep := h.run(t)
	want := fakeStorePool + " ns/a may name it: " + malformed
	equal(t, "pool", rep.Pools[0].ProtectedBy, want)
	equal(t, "warned", slices.Contains(rep.Warnings, "nothing is released from memory a, because every address is protected: "+want), true)
}
