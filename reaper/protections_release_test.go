package reaper_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// writes returns those of the requests that are no reads.
func writes(asked []string) []string {
	return slices.DeleteFunc(slices.Clone(asked), func(request string) bool { return request == "list" || request == "record" })
}

// Promise 7, 10.
func TestExpiredReservedIPIsDeletedAfterItsAddresses(t *testing.T) {
	w, m, s := retaining(t, expiring(keepingOf("a", hours(1), "gone-1")), keepingOf("b", hours(1), "gone-1"))
	var order []string
	m.OnRequest(func(request string) error { order = append(order, request); return nil })
	s.hook = func(request string) error { order = append(order, request); return nil }
	w.run(t)
	equal(t, "writes before the time is over", len(writes(order)), 0)

	w.now = noon.Add(time.Hour)
	stored := string(s.objects[0].Stored)
	report := w.run(t)
	equal(t, "writes", writes(order), []string{"release a", "delete ns/a"})
	equal(t, "outcomes", outcomes(report), map[string]reaper.Outcome{
		"1": reaper.Kept, "2": reaper.Released, "ns/a": reaper.Released, "ns/b": reaper.Kept,
	})
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 4, InUse: 1, Held: 1, Planned: 2, Released: 2})
	equal(t, "objects left", s.keys(), []string{"ns/b"})
	records := w.journal.Read().Records
	equal(t, "records", len(records), 2)
	equal(t, "record of the object", records[1], reaper.Record{
		Backend: reservedIPsName, Pool: fakeStorePool, Key: "ns/a", Stored: []byte(stored),
		Owner: reaper.EntryOwner{Namespace: "default", Pod: "gone-1"},
	})
}

// Promise 5.
func TestDryRunDeletesNoReservedIP(t *testing.T) {
	w, m, s := retaining(t, expiring(keeping("a", hours(0), ip2)))
	before := contentsOf(t, m)
	w.policy.DryRun = policy.Default().DryRun
	equal(t, "outcomes", outcomes(w.run(t)), map[string]reaper.Outcome{"1": reaper.Kept, "2": reaper.Planned, "ns/a": reaper.Planned})
	equal(t, "requests", s.asked, []string{"list"})
	equal(t, "store", contentsOf(t, m), before)
}

// Promise 1, 2. As long as an address of it is not known to be free, the object
// stays, whyever.
func TestReservedIPStaysWithItsAddress(t *testing.T) {
	atRelease := func(what string, do func(w *world, m *backendtest.Memory) error) func(*world, *backendtest.Memory) {
		return func(w *world, m *backendtest.Memory) {
			m.OnRequest(func(request string) error {
				if request == what {
					return do(w, m)
				}
				return nil
			})
		}
	}
	renamed := func(_ *world, m *backendtest.Memory) error {
		m.Rename(reaper.Allocation{Pool: "a", Key: "2"}, app("somebody").Pod)
		return nil
	}
	for _, tt := range []struct {
		name   string
		change func(*world, *backendtest.Memory)
		want   reaper.Outcome // of the address
	}{
		{"it changed before it was recorded", atRelease("record", renamed), reaper.Changed},
		{"it changed before it was released", atRelease("release a", renamed), reaper.Changed},
		{"its owner came back", func(w *world, _ *backendtest.Memory) {
			w.pods.OnCall(func(call string) error {
				if strings.HasPrefix(call, "get") {
					w.pods.Add(reaper.Pod{Ref: app("gone-1").Pod})
				}
				return nil
			})
		}, reaper.Returned},
		{"its release failed", func(w *world, m *backendtest.Memory) {
			w.backends[0] = wrapped{m.Backend(), answering(errors.New("the schema does not allow it"))}
		}, reaper.Failed},
		{"it could not be written down", func(w *world, m *backendtest.Memory) {
			w.backends[0] = unrecorded{m.Backend()}
		}, reaper.Failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, m, s := retaining(t, expiring(keeping("a", hours(0), ip2)))
			tt.change(w, m)
			report, _ := reaper.Run(t.Context(), w.options())
			equal(t, "outcome of the address", outcomes(report)["2"], tt.want)
			e := entryOf(t, report, "ns/a")
			equal(t, "outcome", e.Outcome, reaper.Kept)
			if want := "10.0.0.2, which it protects, was not released"; !strings.Contains(e.Error, want) {
				t.Errorf("its error is %q, want it to say that %s", e.Error, want)
			}
			equal(t, "objects left", s.keys(), []string{"ns/a"})
		})
	}
}

// Promise 2. What is never to be released is no plan, and needs no journal.
func TestReservedIPWhoseAddressAnotherOneKeepsStays(t *testing.T) {
	for _, tt := range []struct {
		name   string
		second reservedIP
		want   finding
	}{
		{"for good", keeping("b", nil, ip2), finding{reaper.Held, reaper.Protected, "10.0.0.2 is held: Protected"}},
		{"for longer", keeping("b", hours(5), ip2), finding{reaper.Suspected, reaper.PodAbsent, ""}},
	} {
		w, _, s := retaining(t, expiring(keeping("a", hours(1), ip2)), tt.second)
		w.run(t)
		w.now = noon.Add(2 * time.Hour)
		report := w.run(t)
		equal(t, "verdict where another keeps it "+tt.name, told(t, report, "ns/a"), tt.want)
		equal(t, "writes", len(writes(s.asked)), 0)
		equal(t, "records", len(w.journal.Read().Records), 0)
	}
}

// Promise 7. Somebody else changed, deleted or locked the object meanwhile.
func TestReservedIPIsDeletedAsItWasListedOnly(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(*fakeStore) error
		want reaper.Outcome
		left []string
	}{
		{"changed", func(s *fakeStore) error {
			s.add(expiring(keeping("a", hours(9), ip2)))
			return nil
		}, reaper.Changed, []string{"ns/a"}},
		{"deleted", func(s *fakeStore) error {
			s.objects = nil
			return nil
		}, reaper.Released, nil},
		{"forbidden", func(*fakeStore) error { return forbidden }, reaper.Failed, []string{"ns/a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, _, s := retaining(t, expiring(keeping("a", hours(0), ip2)))
			s.hook = func(request string) error {
				if request == "delete ns/a" {
					return tt.do(s)
				}
				return nil
			}
			report, _ := reaper.Run(t.Context(), w.options())
			equal(t, "outcomes", outcomes(report), map[string]reaper.Outcome{"1": reaper.Kept, "2": reaper.Released, "ns/a": tt.want})
			equal(t, "objects left", s.keys(), tt.left)
		})
	}
}

// Promise 8. The run dies between the address and the object: its time goes on to
// be counted, and the next run deletes it.
func TestReservedIPIsDeletedByALaterRun(t *testing.T) {
	w, _, s := retaining(t, expiring(keeping("a", hours(1), ip2)))
	w.run(t)
	s.hook = func(request string) error {
		if request == "delete ns/a" {
			return errors.New("killed")
		}
		return nil
	}
	w.now = noon.Add(time.Hour)
	report, _ := w.partial(t)
	equal(t, "outcomes", outcomes(report), map[string]reaper.Outcome{"1": reaper.Kept, "2": reaper.Released, "ns/a": reaper.Failed})
	s.hook = nil
	w.now = noon.Add(time.Hour + time.Second)
	equal(t, "outcomes of the next run", outcomes(w.run(t)), map[string]reaper.Outcome{"1": reaper.Kept, "ns/a": reaper.Released})
	equal(t, "objects left", s.keys(), nil)
}

// A run waits for grace periods, not for what somebody reserved for days.
func TestReservedAddressIsNotWaitedFor(t *testing.T) {
	w, _, _ := retaining(t, expiring(keeping("a", hours(100), ip2)))
	w.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	b := (&bed{}).in(w)
	equal(t, "verdict", told(t, w.run(t), "2").Reason, reaper.Protected)
	equal(t, "naps", len(b.slept), 0)
}

// Promise 1. Limits are shares of addresses, and an object holds none.
func TestLimitsDoNotCountReservedIPs(t *testing.T) {
	w, _, s := retaining(t, expiring(keeping("a", hours(0), ip2)), expiring(keepingOf("b", hours(0), "gone-1")), expiring(keepingOf("c", hours(0), "gone-2")))
	one, none := 1, 0
	w.policy.Limits.MaxReleases, w.policy.Limits.MinEntries = &one, &none
	equal(t, "released", w.run(t).Summary.Released, 4)
	equal(t, "objects left", s.keys(), nil)
}

// Promise 1. One address of a sandbox is kept back: so is the other, whose time goes
// on to be counted, and the object of that waits too.
func TestReservedIPKeepsTheWholeGroup(t *testing.T) {
	m, s := backendtest.NewHandled("handled"), &fakeStore{}
	m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
	w := newWorld(m.Backend(), s)
	w.fill(t, m, "live-1", "gone-1")
	other, err := m.Reserve("b", app("gone-1"))
	if err != nil {
		t.Fatal(err)
	}
	s.add(expiring(keeping("long", hours(2), ip2)), expiring(keeping("short", hours(1), other.IP)))
	before := contentsOf(t, m)
	w.run(t)
	w.now = noon.Add(time.Hour)
	report := w.run(t)
	equal(t, "verdict on the bound one", found(reaper.Decision{Verdict: report.Entries[2].Verdict, Reason: report.Entries[2].Reason}),
		finding{reaper.Held, reaper.SiblingKept, ""})
	equal(t, "verdict on its object", told(t, report, "ns/short"), finding{reaper.Held, reaper.Protected, other.IP.String() + " is held: SiblingKept"})
	equal(t, "store", contentsOf(t, m), before)

	w.now = noon.Add(2 * time.Hour)
	equal(t, "released", w.run(t).Summary.Released, 4)
	equal(t, "objects left", s.keys(), nil)
}
