package whereabouts_test

import (
	"fmt"
	"testing"
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
