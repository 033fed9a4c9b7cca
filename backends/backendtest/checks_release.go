package backendtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 6. A release removes the entry and nothing else.
func releaseOne(s *fixture) {
	leaked := s.leak("a", "gone-1", "gone-2")
	s.leak("b", "gone-3")
	s.live("a", "live-1", "live-2")
	before := s.snapshot()
	d := s.judge(leaked[1])
	s.wantErrors(d.releaseAll(d.confirm()), nil)
	s.wantContent(before, leaked[1])
	if _, still := s.list()[Place(leaked[1].Allocation)]; still {
		s.Errorf("%s was released, and is still listed", Place(leaked[1].Allocation))
	}
}

// Promise 6. One call releases many entries of a pool.
func releaseMany(s *fixture) {
	var leaked []entry
	for n := range 6 {
		leaked = append(leaked, s.leak("a", fmt.Sprintf("gone-%d", n))...)
		s.live("a", fmt.Sprintf("live-%d", n))
	}
	before := s.snapshot()
	d := s.judge(leaked...)
	s.wantErrors(d.releaseAll(d.confirm()), make([]error, len(leaked))...)
	s.wantContent(before, leaked...)
}

// Promise 8. A release of a released entry succeeds.
func releaseTwice(s *fixture) {
	leaked := s.leak("a", "gone-1", "gone-2")
	s.live("a", "live-1")
	d := s.judge(leaked...)
	s.wantErrors(d.releaseAll(d.confirm()), nil, nil)
	before := s.snapshot()
	if orphans, _ := Orphans(s, s.store.Backend(), s.cluster()); len(orphans) != 0 {
		s.Errorf("after the release, %d orphans are listed", len(orphans))
	}
	s.wantErrors(d.releaseAll(d.confirm()), nil, nil)
	s.wantContent(before)
}

// Promise 8. The plugin can allocate a released address again.
func allocateAgain(s *fixture) {
	leaked := s.leak("a", "gone-1", "gone-2")
	d := s.judge(leaked...)
	s.wantErrors(d.releaseAll(d.confirm()), nil, nil)
	for n := range 300 {
		leaked = slices.DeleteFunc(leaked, func(e entry) bool {
			return e.IP == s.live("a", fmt.Sprintf("new-owner-%d", n))[0].IP
		})
		if len(leaked) == 0 {
			return
		}
	}
	s.Errorf("the plugin does not allocate %d of the released addresses again", len(leaked))
}

// Promise 4. The zero warrant releases nothing.
func zeroWarrant(s *fixture) {
	leaked := s.leak("a", "gone-1", "gone-2")
	before := s.snapshot()
	d := s.judge(leaked...)
	s.wantErrors(d.release(s.Context(), make([]ipam.Warrant, 2)), ipam.ErrNoWarrant, ipam.ErrNoWarrant)
	s.wantContent(before)
}

// Promise 4. An expired warrant releases nothing. Only time makes a warrant expire,
// hence the sleep.
func expiredWarrant(s *fixture) {
	leaked := s.leak("a", "gone-1", "gone-2")
	before := s.snapshot()
	s.adoptable = true
	d := s.judge(leaked...)
	ws := d.confirm()
	time.Sleep(ipam.Freshness + 10*time.Millisecond)
	s.wantErrors(d.release(s.Context(), ws), ipam.ErrAgain, ipam.ErrAgain)
	s.wantContent(before)
	s.wantErrors(d.releaseAll(ws), nil, nil)
	s.wantContent(before, leaked...)
}

// Promise 8. Under a cancelled context, nothing is written.
func cancelledRelease(s *fixture) {
	leaked := s.leak("a", "gone-1", "gone-2")
	before := s.snapshot()
	d := s.judge(leaked...)
	ws := d.confirm()
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	for i, err := range d.release(ctx, ws) {
		if err == nil {
			s.Errorf("answer %d is nil, want an error", i+1)
		}
	}
	s.wantContent(before)
}

// Promise 7, 8. An entry that the plugin has freed counts as released.
func goneAlready(s *fixture) {
	leaked := s.leak("a", "gone-1", "gone-2", "gone-3")
	d := s.judge(leaked...)
	ws := d.confirm()
	s.free(leaked[1])
	before := s.snapshot()
	s.wantErrors(d.releaseAll(ws), nil, nil, nil)
	s.wantContent(before, leaked[0], leaked[2])
}

// Promise 1, 4. An address that the plugin gave to another pod stays.
func givenAway(s *fixture) {
	leaked := s.leak("a", "gone-1", "gone-2", "gone-3")
	d := s.judge(leaked...)
	ws := d.confirm()
	newOwner := s.giveAway(leaked[1])
	before := s.snapshot()
	s.wantErrors(d.releaseAll(ws), nil, ipam.ErrChanged, nil)
	s.wantContent(before, leaked[0], leaked[2])
	if got := s.list()[Place(newOwner.Allocation)].Owner.Pod; got != newOwner.requester.Pod {
		s.Errorf("the address belongs to %s, want %s", got, newOwner.requester.Pod)
	}
}

// Promise 7, 9. Each warrant gets its own answer.
func answersInOrder(s *fixture) {
	leaked := s.leak("a", "gone-1", "gone-2", "gone-3", "gone-4", "gone-5")
	d := s.judge(leaked...)
	ws := d.confirm()
	ws[1] = ipam.Warrant{}
	s.giveAway(leaked[2])
	s.free(leaked[3])
	before := s.snapshot()
	delete(before, Place(leaked[0].Allocation))
	s.wantErrors(d.releaseAll(ws), nil, ipam.ErrNoWarrant, ipam.ErrChanged, nil, nil)
	s.wantContent(before, leaked[4])
}
