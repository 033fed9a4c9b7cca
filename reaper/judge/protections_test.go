package judge_test

import (
	"fmt"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// Promise 2. A run first sees the allocation of gone-1 ownerless at noon. It is
// released at the wanted time, not before.
func TestReservedIPKeepsUntilItsTTLIsOver(t *testing.T) {
	const never = -1
	const held = reservedPool + " ns/a keeps it "
	wrapped := netip.MustParseAddr("::ffff:10.0.0.2")
	for _, tt := range []struct {
		name    string
		objects []ipam.Protection
		grace   time.Duration
		want    time.Duration // after noon
		note    string        // at noon, if it is held
	}{
		{"by address", []ipam.Protection{protecting("a", hours(1), ip2)}, 0, time.Hour, held + "until 2026-03-01T13:00:00Z"},
		{"by pod", []ipam.Protection{protectingPod("a", hours(1), "gone-1")}, 0, time.Hour, held + "until 2026-03-01T13:00:00Z"},
		{"by an address in IPv6 form", []ipam.Protection{protecting("a", hours(1), wrapped)}, 0, time.Hour, held + "until 2026-03-01T13:00:00Z"},
		{"of another address", []ipam.Protection{protecting("a", nil, netip.MustParseAddr("10.0.0.3"))}, 0, 0, ""},
		{"of another pod", []ipam.Protection{protectingPod("a", nil, "gone-2")}, 0, 0, ""},
		{"for good", []ipam.Protection{protecting("a", nil, ip2)}, 0, never, held + "for good"},
		{"since the pod went", []ipam.Protection{podDeletedAt(protecting("a", hours(1), ip2), noon.Add(-45*time.Minute))}, 0, 15 * time.Minute,
			held + "until 2026-03-01T12:15:00Z"},
		{"since the pod went, long ago", []ipam.Protection{podDeletedAt(protecting("a", hours(1), ip2), noon.Add(-time.Hour))}, 0, 0, ""},
		{"by several, the longest first", []ipam.Protection{protecting("a", hours(3), ip2), protectingPod("b", hours(1), "gone-1")}, 0, 3 * time.Hour,
			held + "until 2026-03-01T15:00:00Z"},
		{"by several, one for good", []ipam.Protection{protecting("b", hours(1), ip2), protecting("a", nil, ip2), protecting("c", hours(2), ip2)}, 0, never, held + "for good"},
		{"shorter than the grace period", []ipam.Protection{protecting("a", hours(1), ip2)}, 2 * time.Hour, 2 * time.Hour, ""},
		{"a little shorter than the grace period, which a jitter cuts short", []ipam.Protection{protecting("a", new(14*time.Minute+40*time.Second), ip2)},
			15 * time.Minute, 15 * time.Minute, ""},
		{"longer than the grace period", []ipam.Protection{protecting("a", hours(2), ip2)}, time.Hour, 2 * time.Hour, held + "until 2026-03-01T14:00:00Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := reservedSequence(tt.objects...)
			w.policy.GracePeriod = &policy.Duration{Duration: tt.grace}
			first := w.run(t)
			want := decision{judge.Held, judge.Protected, tt.note}
			switch {
			case tt.want == 0:
				want = decision{judge.Orphaned, judge.PodAbsent, ""}
			case tt.note == "":
				want = decision{judge.Suspected, judge.PodAbsent, ""}
			}
			equal(t, "verdict at noon", decisionOf(keyed(t, first, "2")), want)
			equal(t, "verdict on the living", decisionOf(keyed(t, first, "1")), decision{judge.InUse, judge.PodPresent, ""})
			if tt.want > 0 {
				equal(t, "due", keyed(t, first, "2").Due, noon.Add(tt.want))
				w.now = noon.Add(tt.want - early(tt.grace) - time.Second)
				kept(t, "a second before", keyed(t, w.run(t), "2"))
				w.now = noon.Add(tt.want)
				goes(t, "in time", keyed(t, w.run(t), "2"))
			}
			if tt.want == never {
				w.now = noon.Add(10 * 365 * 24 * time.Hour)
				equal(t, "verdict years later", decisionOf(keyed(t, w.run(t), "2")), want)
			}
		})
	}
}

const malformed = `ttl .spec.ttl: "7d" is not how long to keep an address`

// undecoded returns the object as one that cannot be decoded.
func undecoded(o ipam.Protection) ipam.Protection {
	o.Unreadable = malformed
	return o
}

// Promise 2. An object that cannot be decoded protects what it may name, for good. It protects
// nothing else.
func TestObjectThatCannotBeDecodedHoldsWhatItMayName(t *testing.T) {
	in := func(namespaces ...string) ipam.Protection {
		o := protecting("a", nil)
		o.Namespaces = namespaces
		return o
	}
	everything := protecting("a", nil)
	everything.All = true
	network := func(text string) ipam.Protection {
		o := protecting("a", nil)
		o.Ranges = ipam.NewSpans(ipam.SpanOf(netip.MustParsePrefix(text)))
		return o
	}
	const mayName = reservedPool + " ns/a may name it: " + malformed
	for _, tt := range []struct {
		name   string
		object ipam.Protection
		held   bool
	}{
		{"its address", protecting("a", nil, ip2), true},
		{"its network", network("10.0.0.0/16"), true},
		{"another network", network("10.1.0.0/16"), false},
		{"its pod", protectingPod("a", nil, "gone-1"), true},
		{"the namespace of the pod", in("default"), true},
		{"everything", everything, true},
		{"another address", protecting("a", nil, netip.MustParseAddr("10.0.0.3")), false},
		{"another pod", protectingPod("a", nil, "gone-2"), false},
		{"another namespace", in("prod"), false},
		{"nothing", in(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			decisions := reservedSequence(undecoded(tt.object)).run(t)
			want := decision{judge.Orphaned, judge.PodAbsent, ""}
			if tt.held {
				want = decision{judge.Held, judge.Protected, mayName}
			}
			equal(t, "verdict", decisionOf(keyed(t, decisions, "2")), want)
			equal(t, "verdict on the living", decisionOf(keyed(t, decisions, "1")), decision{judge.InUse, judge.PodPresent, ""})
		})
	}
}

// Promise 2. An allocation that names no pod for certain may be of any namespace.
func TestObjectThatCannotBeDecodedHoldsAllocationsWithoutAPod(t *testing.T) {
	object := undecoded(protecting("a", nil))
	object.Namespaces = []string{"prod"}
	w := reservedSequence(object)
	w.backends[0] = fixedStore{poolOf(ipam.Allocation{Key: "2", Token: "t", IP: ip2, Owner: ipam.Owner{Sandbox: "s1"}})}
	w.policy.Pods.Unnamed = "release"
	equal(t, "verdict", keyed(t, w.run(t), "2").Reason, judge.Protected)
}

// Promise 2. If the objects cannot be listed, everything is held.
func TestEverythingIsHeldWhileAProtectorCannotBeRead(t *testing.T) {
	w := reservedSequence()
	w.objects.broken = errForbidden
	equal(t, "verdict", decisionOf(keyed(t, w.run(t), "2")), decision{judge.Held, judge.Protected, "reservedIPs could not be read: " + errForbidden.Error()})
	w.objects.broken = nil
	goes(t, "once it can", keyed(t, w.run(t), "2"))
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
	const by = "its folder is shared with other nodes"
	const says = "nothing is released from store one, because every address is protected: " + by
	var six []ipam.Pool
	for n := range 7 {
		six = append(six, leakyPool(fmt.Sprint("p", n), by, by))
	}
	noRange := leakyPool("one", by, by)
	noRange.Range = netip.Prefix{}
	live := leakyPool("one", by, by)
	live.Allocations[0].Owner.Pod = other
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
			w := newSequence(namedStore{tt.pools, "store"})
			w.lists.Pods = append(w.lists.Pods, showing(other, ip9))
			found, warnings := judge.ProtectedPools(inventory(t, w.backends...), w.run(t))
			equal(t, "warnings", warnings, tt.want)
			for _, p := range tt.pools {
				want := ""
				if tt.want != nil {
					want = p.Protected
				}
				equal(t, "what protects "+p.Name, found[ipam.PoolRef{Backend: "store", Name: p.Name}], want)
			}
		})
	}
}
