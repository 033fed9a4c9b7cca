package reaper_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 1, 2. An address is released once its object has expired, and not before.
func TestAddressIsReleasedOnceItsObjectHasExpired(t *testing.T) {
	h, m, _ := protectedHarness(t, protectingPod("a", hours(1), "gone-1"))
	before := contentsOf(t, m)
	equal(t, "verdict", reported(t, h.run(t), "2"), decision{judge.Held, judge.Protected, fakeResource + " ns/a keeps it until 2026-03-01T13:00:00Z"})
	equal(t, "store before the time is over", contentsOf(t, m), before)
	h.now = noon.Add(time.Hour)
	rep := h.run(t)
	equal(t, "outcomes", outcomes(rep), map[string]report.Fate{"1": report.Kept, "2": report.Released})
	equal(t, "summary", rep.Summary, report.Counts{Entries: 2, InUse: 1, Planned: 1, Released: 1})
}

// Promise 1. If one address of a sandbox is protected, its sibling is kept. The time of
// the sibling keeps running.
func TestReservedIPKeepsTheWholeGroup(t *testing.T) {
	m, p := backendtest.NewHandled("handled"), &fakeProtector{}
	m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
	h := newHarness(m.Backend())
	h.protectors = []ipam.Protector{p}
	h.addPods(t, m, "live-1", "gone-1")
	other, err := m.Reserve("b", app("gone-1"))
	if err != nil {
		t.Fatal(err)
	}
	p.objects = []ipam.Protection{protecting("long", hours(2), ip2), protecting("short", hours(1), other.IP)}
	before := contentsOf(t, m)
	h.run(t)
	h.now = noon.Add(time.Hour)
	report := h.run(t)
	equal(t, "verdict on the bound one", decision{report.Entries[2].Verdict, report.Entries[2].Reason, ""},
		decision{judge.Held, judge.SiblingKept, ""})
	equal(t, "store", contentsOf(t, m), before)

	h.now = noon.Add(2 * time.Hour)
	equal(t, "released", h.run(t).Summary.Released, 2)
}

// Promise 2, 9, 11. If the objects cannot be listed, any address may be protected.
func TestNothingIsReleasedIfReservedIPsCannotBeRead(t *testing.T) {
	h, m, p := protectedHarness(t, protecting("a", hours(1), netip.MustParseAddr("10.9.9.9")))
	before := contentsOf(t, m)
	p.broken = errForbidden
	rep, failures := h.partial(t)
	equal(t, "failures", failures, []string{"reservedIPs: " + errForbidden.Error()})
	equal(t, "statuses", statuses(rep), map[string]string{"memory": "ok", "reservedIPs": "failed: " + errForbidden.Error()})
	equal(t, "verdict", reported(t, rep, "2"), decision{judge.Held, judge.Protected, "reservedIPs could not be read: " + errForbidden.Error()})
	equal(t, "verdict on the living", reported(t, rep, "1"), decision{judge.InUse, judge.PodPresent, ""})
	equal(t, "store", contentsOf(t, m), before)

	p.broken = nil
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
		p := &fakeProtector{objects: []ipam.Protection{protecting("a", nil, ip2)}}
		if broken {
			p.broken = errForbidden
		}
		h.protectors = []ipam.Protector{p}
		rep, err := reaper.Run(t.Context(), h.options())
		if partial := (*report.PartialError)(nil); errors.As(err, &partial) != broken {
			t.Errorf("run: %v", err)
		}
		equal(t, "outcome", outcomes(rep)["10.0.0.2"], report.Released)
	}
}

const malformed = `ttl .spec.ttl: "7d" is not how long to keep an address`

// undecoded returns the object as one that cannot be decoded.
func undecoded(o ipam.Protection) ipam.Protection {
	o.Unreadable = malformed
	return o
}

// Promise 7, 9. An object that cannot be decoded keeps nothing but what it may name. It fails no run,
// and the report names it.
func TestObjectThatCannotBeDecodedIsAWarning(t *testing.T) {
	o := undecoded(protecting("a", nil))
	o.Namespaces = []string{"prod"}
	h, _, _ := protectedHarness(t, o)
	rep := h.run(t)
	const says = fakeResource + " ns/a: " + malformed + "; correct it, or delete it"
	equal(t, "warning", rep.Warnings[0], says)
	equal(t, "objects", rep.Backends[1].Undecoded, []string{says})
	equal(t, "statuses", statuses(rep), map[string]string{"memory": "ok", "reservedIPs": "ok"})
	equal(t, "outcomes", outcomes(rep), map[string]report.Fate{"1": report.Kept, "2": report.Released})
}

// An object that may name every address protects each pool as a whole.
func TestReservedIPsMayProtectAPoolAsAWhole(t *testing.T) {
	o := undecoded(protecting("a", nil))
	o.All = true
	h, _, _ := protectedHarness(t, o)
	rep := h.run(t)
	want := fakeResource + " ns/a may name it: " + malformed
	equal(t, "pool", rep.Pools[0].ProtectedBy, want)
	equal(t, "warned", slices.Contains(rep.Warnings, "nothing is released from memory a, because every address is protected: "+want), true)
}
