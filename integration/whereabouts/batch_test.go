package whereabouts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/fault"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// leakBatch writes three reservations of pods that are gone. Only the second one, of web-0, has an
// allocation in a pool.
func (f *fixture) leakBatch() {
	f.Helper()
	f.writeReservation("10.0.0.1", ref("gone-1"))
	f.leak("web-0")
	f.writeReservation("10.2.0.1", ref("gone-3"))
}

// A pod comes back while a batch is released: before its own tombstone, between those of
// others, before the list of the pools, between the looks, or between the deletions. Its
// ADD writes at that step or at a later one. The pod keeps what its ADD got, and the others
// are released (promises 1 and 4).
func TestEveryStepOfABatchAPodComesBackAt(t *testing.T) {
	f := newFixture(t)
	steps, first := f.requests(f.leakBatch, inOrder)
	steps = untilReleased(steps)
	end := len(steps) + 1
	for n := first; n < end; n++ {
		for _, later := range []int{0, 1, 3, end - n} {
			of := n + later
			// The write before its own tombstone and the last write are like those of a single
			// release.
			edge := steps[n-1].String() + " " + steps[n-1].Name
			sampled := storeWrite(steps[n-1]) && steps[n-1].Resource != "ippools" && later == 0 &&
				edge != "patch overlappingrangeipreservations 10.0.0.1" && edge != "delete overlappingrangeipreservations 10.2.0.1"
			if of > end || later == 3 && of >= end || testing.Short() && !sampled {
				continue
			}
			f.each(fmt.Sprintf("before %d %s %s, and the ADD writes %d later", n, steps[n-1], steps[n-1].Name, later), func() {
				f.comeback(f.leakBatch, n, later, end, inOrder)
			})
		}
	}
}

// The run is killed before or after any write of a batch. Each reservation is left in one of four
// states, and the next run reaches the same end from all of them, even if the owner of a tombstone
// has come back (promises 1 and 8).
func TestEveryKillOfABatchIsFinishedByTheNextRun(t *testing.T) {
	f := newFixture(t)
	f.requests(f.leakBatch, inOrder)
	points := slices.DeleteFunc(fault.Points(fault.Writes(f.toReaper)), func(p fault.Point) bool {
		return !strings.HasSuffix(p.Kind(), "overlappingrangeipreservations")
	})
	if len(points) != 12 {
		t.Fatalf("%d points, want 12: before and after two writes of three reservations", len(points))
	}
	for _, p := range points {
		if testing.Short() && (p.Kind() == "patch overlappingrangeipreservations") != p.After {
			continue // after a tombstone, and before a deletion
		}
		f.each(p.String(), func() {
			f.clear("web-0")
			f.leakBatch()
			f.must(fault.Kill(f.toReaper, p, func() (*reap.Process, error) { return f.start(noLimit, inOrder), nil }))
			f.pod("web-0", pending)
			f.converge()
			owners := f.owners()
			for ip, owner := range owners {
				if owner != ref("web-0") {
					f.Errorf("%s has %s, want nothing but what web-0 had", owner, ip)
				}
			}
			f.gone("web-0")
			f.converge()
			f.wantOwners(nothing)
		})
	}
}

// Safety does not rest on the lock: another run meets a batch halfway, and finishes it. Both reach
// the same end, and neither reports as released what is not (promises 1, 7 and 8).
func TestEveryStepAtWhichTwoRunsMeetInABatch(t *testing.T) {
	f := newFixture(t)
	for _, tt := range []struct {
		name string
		at   proxy.Match
	}{
		{"between the tombstones", proxy.Nth(2, proxy.On("patch overlappingrangeipreservations"))},
		{"between the deletions", proxy.Nth(2, proxy.On("delete overlappingrangeipreservations"))},
	} {
		f.each(tt.name, func() {
			f.clear()
			f.leakBatch()
			held, err := fault.Hold(f.toReaper, tt.at, func() (*reap.Process, error) { return f.start(noLimit, inOrder), nil })
			f.must(err)
			f.mustReap(reap.ExitDone, noLimit)
			f.wantOwners(nothing)
			result, err := held.Finish()
			f.must(err)
			if result.ExitCode != reap.ExitDone {
				f.Errorf("exit code %d, want 0\n%s", result.ExitCode, result.Stderr)
			}
			f.wantOwners(nothing)
		})
	}
}
