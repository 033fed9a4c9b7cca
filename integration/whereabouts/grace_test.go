package whereabouts_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

// A step is one run of several.
type step struct {
	at   time.Duration    // since the first run
	do   func(f *fixture) // before the run; may be nil
	want []string         // as in a scenario
}

// playSteps runs the steps with one policy, and checks the store after each.
func (f *fixture) playSteps(terms string, steps []step) {
	f.Helper()
	first := firstRun()
	for _, step := range steps {
		if step.do != nil {
			step.do(f)
		}
		before := f.store()
		lines := f.runAt(first.Add(step.at), terms)
		f.wantLines(step.want, lines)
		f.wantStore(before.without(lines))
		if f.Failed() {
			f.Fatalf("at the run after %v", step.at)
		}
	}
}

// firstRun returns a time at which what the plugin has just made is an hour old. The ledger counts
// in seconds.
func firstRun() time.Time { return time.Now().Truncate(time.Second).Add(time.Hour) }

// The pod adopts its entry between two runs that both missed it. Only the entry shows that the pod
// was there: adopting a reservation writes nothing. But the reservation waits with its entry.
func TestGraceBeginsAnewWhenThePodAdoptedItsEntry(t *testing.T) {
	f := newFixture(t)
	f.playSteps("gracePeriod: 15m\n", []step{
		{
			at: 0, do: func(f *fixture) { f.add(lan, "web-0") },
			want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 suspected PodAbsent kept"),
		},
		{
			at: 16 * time.Minute, do: func(f *fixture) { f.wantAddresses(f.add(lan, "web-0"), "10.0.0.1") },
			want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 suspected PodAbsent kept"),
		},
		{at: 31 * time.Minute, want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released")},
	})
}

// The pod waits for an address in a full pool, and has an entry there from before. The plugin gives
// it that one.
func TestEntryStaysThatItsPendingPodIsAboutToAdopt(t *testing.T) {
	full := plugin.Network{Range: "10.0.0.0/30"}
	play(t, []scenario{{
		name: "in a full pool",
		set: func(f *fixture) {
			f.add(full, "web-0")
			f.runs("web-1", f.add(full, "web-1")...)
			f.pod("web-0", cluster.Phase("Pending"))
		},
		want: append(
			both("10.0.0.0-30/1", "10.0.0.1", "10.0.0.1 web-0 inUse PodPresent kept"),
			both("10.0.0.0-30/2", "10.0.0.2", "10.0.0.2 web-1 inUse PodPresent kept")...),
		then: func(f *fixture) { f.wantAddresses(f.add(full, "web-0"), "10.0.0.1") },
	}})
}
