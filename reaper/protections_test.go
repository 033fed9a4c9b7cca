package reaper_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 2. The entry of gone-1 is first seen ownerless at noon, and released at
// the time that is wanted, not before.
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
		{"by address", []reservedIP{keeping("a", hours(1), ip2)}, 0, time.Hour, held + "until 2026-03-01T13:00:00Z"},
		{"by pod", []reservedIP{keepingOf("a", hours(1), "gone-1")}, 0, time.Hour, held + "until 2026-03-01T13:00:00Z"},
		{"by one of its addresses", []reservedIP{keeping("a", hours(1), netip.MustParseAddr("10.9.9.9"), ip2)}, 0, time.Hour,
			held + "until 2026-03-01T13:00:00Z"},
		{"by an address in IPv6 form", []reservedIP{keeping("a", hours(1), wrapped)}, 0, time.Hour, held + "until 2026-03-01T13:00:00Z"},
		{"of another address", []reservedIP{keeping("a", nil, netip.MustParseAddr("10.0.0.3"))}, 0, 0, ""},
		{"of another pod", []reservedIP{keepingOf("a", nil, "gone-2")}, 0, 0, ""},
		{"of a pod in another namespace", []reservedIP{{Key: "ns/a", Pod: reaper.PodRef{Namespace: "prod", Name: "gone-1"}}}, 0, 0, ""},
		{"for good", []reservedIP{keeping("a", nil, ip2)}, 0, never, held + "for good"},
		{"for good, of a pod that went long ago", []reservedIP{deletedAt(keeping("a", nil, ip2), noon.Add(-1000*time.Hour))}, 0, never, held + "for good"},
		{"for no time", []reservedIP{keeping("a", hours(0), ip2)}, 0, 0, ""},
		{"since the pod went", []reservedIP{deletedAt(keeping("a", hours(1), ip2), noon.Add(-45*time.Minute))}, 0, 15 * time.Minute,
			held + "until 2026-03-01T12:15:00Z"},
		{"since the pod went, long ago", []reservedIP{deletedAt(keeping("a", hours(1), ip2), noon.Add(-time.Hour))}, 0, 0, ""},
		{"of a pod that is to go", []reservedIP{deletedAt(keeping("a", hours(1), ip2), noon.Add(time.Hour))}, 0, 2 * time.Hour,
			held + "until 2026-03-01T14:00:00Z"},
		{"by several, the longest first", []reservedIP{keeping("a", hours(3), ip2), keepingOf("b", hours(1), "gone-1")}, 0, 3 * time.Hour,
			held + "until 2026-03-01T15:00:00Z"},
		{"by several, the longest last", []reservedIP{keeping("b", hours(1), ip2), keepingOf("a", hours(3), "gone-1")}, 0, 3 * time.Hour,
			held + "until 2026-03-01T15:00:00Z"},
		{"by several, one for good", []reservedIP{keeping("b", hours(1), ip2), keeping("a", nil, ip2), keeping("c", hours(2), ip2)}, 0, never, held + "for good"},
		{"shorter than the grace period", []reservedIP{keeping("a", hours(1), ip2)}, 2 * time.Hour, 2 * time.Hour, ""},
		{"as long as the grace period", []reservedIP{keeping("a", hours(1), ip2)}, time.Hour, time.Hour, ""},
		{"longer than the grace period", []reservedIP{keeping("a", hours(2), ip2)}, time.Hour, 2 * time.Hour, held + "until 2026-03-01T14:00:00Z"},
		{"since the pod went, and grace since it was seen", []reservedIP{deletedAt(keeping("a", hours(1), ip2), noon.Add(-50*time.Minute))},
			15 * time.Minute, 15 * time.Minute, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, _, _ := retaining(t, tt.objects...)
			w.policy.GracePeriod = &policy.Duration{Duration: tt.grace}
			report := w.run(t)
			want := finding{reaper.Held, reaper.Protected, tt.note}
			switch {
			case tt.want == 0:
				want = finding{reaper.Orphaned, reaper.PodAbsent, ""}
			case tt.note == "":
				want = finding{reaper.Suspected, reaper.PodAbsent, ""}
			}
			equal(t, "verdict at noon", told(t, report, "2"), want)
			equal(t, "verdict on the living", told(t, report, "1"), finding{reaper.InUse, reaper.PodPresent, ""})
			if tt.want > 0 {
				equal(t, "due", *entryOf(t, report, "2").Due, noon.Add(tt.want))
				w.now = noon.Add(tt.want - time.Second)
				equal(t, "outcome a second before", outcomes(w.run(t))["2"], reaper.Kept)
				w.now = noon.Add(tt.want)
				equal(t, "outcome in time", outcomes(w.run(t))["2"], reaper.Released)
			}
			if tt.want == never {
				w.now = noon.Add(10 * 365 * 24 * time.Hour)
				equal(t, "verdict years later", told(t, w.run(t), "2"), want)
			}
		})
	}
}

// Promise 2. An owner that was there in between starts the time anew.
func TestReservedIPCountsFromTheLastTimeThatTheOwnerWasThere(t *testing.T) {
	w, _, _ := retaining(t, keeping("a", hours(1), ip2))
	w.run(t)
	w.pods.Add(reaper.Pod{Ref: app("gone-1").Pod, UID: app("gone-1").UID})
	w.now = noon.Add(30 * time.Minute)
	w.run(t)
	w.pods.Remove(app("gone-1").Pod)
	w.now = noon.Add(40 * time.Minute)
	equal(t, "verdict", told(t, w.run(t), "2").Note, fakeStorePool+" ns/a keeps it until 2026-03-01T13:40:00Z")
}

// Promise 2, 9, 11. Nobody knows what is kept back where that cannot be listed.
func TestNothingIsReleasedWhereReservedIPsCannotBeRead(t *testing.T) {
	w, m, s := retaining(t, keeping("a", hours(1), netip.MustParseAddr("10.9.9.9")))
	before := contentsOf(t, m)
	s.hook = func(string) error { return forbidden }
	report, failures := w.partial(t)
	equal(t, "failures", failures, []string{"reservedIPs: " + forbidden.Error()})
	equal(t, "statuses", statuses(report), map[string]string{"memory": "ok", "reservedIPs": "failed: " + forbidden.Error()})
	equal(t, "verdict", told(t, report, "2"), finding{reaper.Held, reaper.Protected, "reservedIPs could not be read: " + forbidden.Error()})
	equal(t, "verdict on the living", told(t, report, "1"), finding{reaper.InUse, reaper.PodPresent, ""})
	equal(t, "store", contentsOf(t, m), before)

	s.hook = nil
	equal(t, "outcome once they can", outcomes(w.run(t))["2"], reaper.Released)
}

// Promise 2. A policy that turns them off by their backend's name has not said that
// nothing is reserved.
func TestReservedIPsThatWereNotLookedAtKeep(t *testing.T) {
	w, _, _ := retaining(t, keeping("a", nil, ip2))
	w.policy.Backends[reservedIPsName] = policy.Backend{Enabled: policy.Off}
	equal(t, "verdict", told(t, w.run(t), "2").Reason, reaper.Protected)
}

// Grace goes on to be counted while an entry is kept back.
func TestGracePeriodRunsWhileAnAddressIsReserved(t *testing.T) {
	w, _, s := retaining(t)
	w.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	s.hook = func(string) error { return forbidden }
	w.partial(t)
	s.hook = nil
	w.now = noon.Add(time.Hour)
	equal(t, "outcome", outcomes(w.run(t))["2"], reaper.Released)
}

// Promise 8. A release that a crash cut short is finished: it was not kept back
// when it began, and a tombstone serves nobody.
func TestInterruptedReleaseIsFinishedWhateverIsReserved(t *testing.T) {
	for _, broken := range []bool{false, true} {
		w, _ := interrupted(t)
		s := &fakeStore{}
		s.add(keeping("a", nil, ip2))
		if broken {
			s.hook = func(string) error { return forbidden }
		}
		w.backends = append(w.backends, s)
		report, err := reaper.Run(t.Context(), w.options())
		if partial := (*reaper.PartialError)(nil); errors.As(err, &partial) != broken {
			t.Errorf("run: %v", err)
		}
		equal(t, "outcome", outcomes(report)["10.0.0.2"], reaper.Released)
	}
}

// Promise 2. The objects themselves, while what they keep back is not over.
func TestDecisionsOnReservedIPs(t *testing.T) {
	free := netip.MustParseAddr("10.9.9.9")
	reserved := func(note string) finding { return finding{reaper.Held, reaper.Protected, note} }
	for _, tt := range []struct {
		name   string
		object reservedIP
		change func(*world)
		want   finding
	}{
		{"a pod shows the address", expiring(keeping("a", hours(0), ip1)), nil,
			finding{reaper.InUse, reaper.AddressInUse, "10.0.0.1 is shown by pod default/live-1"}},
		{"the pod is there", expiring(keepingOf("a", hours(0), "live-1")), nil, finding{reaper.InUse, reaper.PodPresent, ""}},
		{"the pod comes back", expiring(keepingOf("a", hours(0), "db-0")), func(w *world) {
			w.pods.AddSets(reaper.StatefulSet{Namespace: "default", Name: "db", Replicas: 1})
		}, finding{reaper.Held, reaper.Retained, "its StatefulSet brings the pod back"}},
		{"it has no TTL", expiring(keeping("a", nil, free)), nil, reserved("it has no TTL")},
		{"the policy does not delete", keeping("a", hours(0), free), nil, reserved("the policy does not allow its release")},
		{"its time is not over", expiring(keeping("a", hours(1), free)), nil, reserved("until 2026-03-01T13:00:00Z")},
		{"it names nothing", expiring(keeping("a", hours(0))), nil,
			finding{reaper.Held, reaper.OwnerUnknown, "it names neither an address nor a pod"}},
		{"a rule holds what it keeps back", expiring(keeping("a", hours(0), ip2)), func(w *world) {
			w.policy.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"gone-1"}}, Hold: true}}
		}, reserved("10.0.0.2 is held: RuleHold")},
		{"what it keeps back is in use", expiring(keepingOf("a", hours(0), "gone-1")), func(w *world) {
			w.pods.Add(showing(other, ip2))
		}, finding{reaper.InUse, reaper.AddressInUse, "10.0.0.2 is in use: AddressInUse"}},
		{"a rule about its kind holds it", expiring(keeping("a", hours(0), free)), func(w *world) {
			w.policy.Rules = []policy.Rule{{Match: policy.Match{Backends: []string{reservedIPsName}}, Hold: true}}
		}, finding{reaper.Held, reaper.RuleHold, ""}},
		{"its pod is out of scope", expiring(keepingOf("a", hours(0), "gone-2")), func(w *world) {
			w.policy.Namespaces.Exclude = []string{"default"}
		}, finding{reaper.Held, reaper.OutOfScope, ""}},
		{"what it keeps back waits", expiring(keeping("a", hours(0), ip2)), func(w *world) {
			w.policy.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"gone-1"}}, GracePeriod: &policy.Duration{Duration: time.Hour}}}
		}, finding{reaper.Suspected, reaper.PodAbsent, ""}},
		{"its time is over", expiring(keeping("a", hours(0), free)), nil, finding{reaper.Orphaned, reaper.PodAbsent, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, _, s := retaining(t, tt.object)
			if tt.change != nil {
				tt.change(w)
			}
			report := w.run(t)
			equal(t, "verdict", told(t, report, "ns/a"), tt.want)
			stays := tt.want.Verdict != reaper.Orphaned
			equal(t, "it is still there", slices.Contains(s.keys(), "ns/a"), stays)
		})
	}
}
