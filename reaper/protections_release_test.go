package reaper_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// writes returns the requests that write.
func writes(asked []string) []string {
	return slices.DeleteFunc(slices.Clone(asked), func(request string) bool { return request == "list" || request == "record" })
}

// Promise 7, 10.
func TestExpiredReservedIPIsDeletedAfterItsAddresses(t *testing.T) {
	h, m, s := protectedHarness(t, deletable(protectingPod("a", hours(1), "gone-1")), protectingPod("b", hours(1), "gone-1"))
	var order []string
	m.OnRequest(func(request string) error { order = append(order, request); return nil })
	s.hook = func(request string) error { order = append(order, request); return nil }
	h.run(t)
	equal(t, "writes before the time is over", len(writes(order)), 0)

	h.now = noon.Add(time.Hour)
	stored := string(s.objects[0].Stored)
	rep := h.run(t)
	equal(t, "writes", writes(order), []string{"release a", "delete ns/a"})
	equal(t, "outcomes", outcomes(rep), map[string]report.Outcome{
		"1": report.Kept, "2": report.Released, "ns/a": report.Released, "ns/b": report.Kept,
	})
	equal(t, "summary", rep.Summary, report.Counts{Entries: 4, InUse: 1, Held: 1, Planned: 2, Released: 2})
	equal(t, "objects left", s.keys(), []string{"ns/b"})
	records := h.journal.Read().Records
	equal(t, "records", len(records), 2)
	equal(t, "record of the object", records[1], ipam.Record{
		Backend: reservedIPsName, Pool: fakeStorePool, Key: "ns/a", Stored: []byte(stored),
		Owner: ipam.EntryOwner{Namespace: "default", Pod: "gone-1"},
	})
}

// Promise 1, 2. The object stays as long as an address that it protects is not known to
// be free.
func TestReservedIPStaysWithItsAddress(t *testing.T) {
	atRelease := func(what string, do func(h *harness, m *backendtest.Memory) error) func(*harness, *backendtest.Memory) {
		return func(h *harness, m *backendtest.Memory) {
			m.OnRequest(func(request string) error {
				if request == what {
					return do(h, m)
				}
				return nil
			})
		}
	}
	renamed := func(_ *harness, m *backendtest.Memory) error {
		m.Rename(ipam.Allocation{Pool: "a", Key: "2"}, app("new-1").Pod)
		return nil
	}
	for _, tt := range []struct {
		name   string
		change func(*harness, *backendtest.Memory)
		want   report.Outcome // of the address
	}{
		{"it changed before it was recorded", atRelease("record", renamed), report.Changed},
		{"it changed before it was released", atRelease("release a", renamed), report.Changed},
		{"its owner came back", func(h *harness, _ *backendtest.Memory) {
			h.pods.OnCall(func(call string) error {
				if strings.HasPrefix(call, "get") {
					h.pods.Add(census.Pod{Ref: app("gone-1").Pod})
				}
				return nil
			})
		}, report.Returned},
		{"its release failed", func(h *harness, m *backendtest.Memory) {
			h.backends[0] = wrapped{m.Backend(), answering(errors.New("the schema does not allow it"))}
		}, report.Failed},
		{"it could not be recorded", func(h *harness, m *backendtest.Memory) {
			h.backends[0] = spyRecorder{m.Backend(), func([]json.RawMessage) []json.RawMessage { return nil }}
		}, report.Failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, m, s := protectedHarness(t, deletable(protecting("a", hours(0), ip2)))
			tt.change(h, m)
			rep, _ := reaper.Run(t.Context(), h.options())
			equal(t, "outcome of the address", outcomes(rep)["2"], tt.want)
			e := entryOf(t, rep, "ns/a")
			equal(t, "outcome", e.Outcome, report.Kept)
			if want := "10.0.0.2, which it protects, was not released"; !strings.Contains(e.Error, want) {
				t.Errorf("its error is %q, want it to say that %s", e.Error, want)
			}
			equal(t, "objects left", s.keys(), []string{"ns/a"})
		})
	}
}

// Promise 1. If one address of a sandbox is protected, its sibling is kept. The time of
// the sibling keeps running, and the object that protects the sibling waits too.
func TestReservedIPKeepsTheWholeGroup(t *testing.T) {
	m, s := backendtest.NewHandled("handled"), &fakeStore{}
	m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
	h := newHarness(m.Backend(), s)
	h.addPods(t, m, "live-1", "gone-1")
	other, err := m.Reserve("b", app("gone-1"))
	if err != nil {
		t.Fatal(err)
	}
	s.add(deletable(protecting("long", hours(2), ip2)), deletable(protecting("short", hours(1), other.IP)))
	before := contentsOf(t, m)
	h.run(t)
	h.now = noon.Add(time.Hour)
	report := h.run(t)
	equal(t, "verdict on the bound one", decision{report.Entries[2].Verdict, report.Entries[2].Reason, ""},
		decision{judge.Held, judge.SiblingKept, ""})
	equal(t, "verdict on its object", reported(t, report, "ns/short"), decision{judge.Held, judge.Protected, other.IP.String() + " is held: SiblingKept"})
	equal(t, "store", contentsOf(t, m), before)

	h.now = noon.Add(2 * time.Hour)
	equal(t, "released", h.run(t).Summary.Released, 4)
	equal(t, "objects left", s.keys(), nil)
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

const malformed = `ttl .spec.ttl: "7d" is not how long to keep an address`

// undecoded returns the object as one that cannot be decoded.
func undecoded(o reservedIP) reservedIP {
	o.Undecoded = malformed
	return o
}

// Promise 7, 9. An object that cannot be decoded keeps no other object: every store was listed. It
// fails no run, and the report names it.
func TestObjectThatCannotBeDecodedKeepsNoOther(t *testing.T) {
	h, _, s := protectedHarness(t, undecoded(reservedIP{Key: "ns/a", Namespaces: []string{"prod"}}), deletable(protecting("b", hours(0), ip2)))
	rep := h.run(t)
	const says = fakeStorePool + " ns/a: " + malformed
	equal(t, "warning", rep.Warnings[0], says)
	equal(t, "objects", rep.Backends[1].Undecoded, []string{says})
	equal(t, "statuses", statuses(rep), map[string]string{"memory": "ok", "reservedIPs": "ok"})
	equal(t, "outcomes", outcomes(rep), map[string]report.Outcome{
		"1": report.Kept, "2": report.Released, "ns/a": report.Kept, "ns/b": report.Released,
	})
	equal(t, "objects left", s.keys(), []string{"ns/a"})
}

// An object that may name every address protects each pool as a whole.
func TestReservedIPsMayProtectAPoolAsAWhole(t *testing.T) {
	h, _, _ := protectedHarness(t, undecoded(reservedIP{Key: "ns/a", All: true}))
	rep := h.run(t)
	want := fakeStorePool + " ns/a may name it: " + malformed
	equal(t, "pool", rep.Pools[0].ProtectedBy, want)
	equal(t, "warned", slices.Contains(rep.Warnings, "nothing is released from memory a, because every address is protected: "+want), true)
}
