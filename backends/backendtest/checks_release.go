package backendtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 6.
func releaseOne(s *stage) {
	leaked := s.leak("a", "gone-1", "gone-2")
	s.leak("b", "gone-3")
	s.live("a", "live-1", "live-2")
	before := s.snapshot()
	d := s.suspect(leaked[1])
	s.want(d.settle(d.confirm()), nil)
	s.holds(before, leaked[1])
	if _, still := s.list()[Place(leaked[1].Allocation)]; still {
		s.Errorf("%s was released and is listed", Place(leaked[1].Allocation))
	}
}

// Promise 6.
func releaseMany(s *stage) {
	var leaked []entry
	for n := range 6 {
		leaked = append(leaked, s.leak("a", fmt.Sprintf("gone-%d", n))...)
		s.live("a", fmt.Sprintf("live-%d", n))
	}
	before := s.snapshot()
	d := s.suspect(leaked...)
	s.want(d.settle(d.confirm()), make([]error, len(leaked))...)
	s.holds(before, leaked...)
}

// Promise 8.
func releaseTwice(s *stage) {
	leaked := s.leak("a", "gone-1", "gone-2")
	s.live("a", "live-1")
	d := s.suspect(leaked...)
	s.want(d.settle(d.confirm()), nil, nil)
	before := s.snapshot()
	if orphans, _ := Orphans(s, s.store.Backend(), s.pods); len(orphans) != 0 {
		s.Errorf("after the release there are still %d orphans", len(orphans))
	}
	s.want(d.settle(d.confirm()), nil, nil)
	s.holds(before)
}

// Promise 8.
func reserveAgain(s *stage) {
	leaked := s.leak("a", "gone-1", "gone-2")
	d := s.suspect(leaked...)
	s.want(d.settle(d.confirm()), nil, nil)
	for n := range 300 {
		leaked = slices.DeleteFunc(leaked, func(e entry) bool {
			return e.IP == s.live("a", fmt.Sprintf("heir-%d", n))[0].IP
		})
		if len(leaked) == 0 {
			return
		}
	}
	s.Errorf("%d addresses were released, and the plugin does not give them again", len(leaked))
}

// Promise 4.
func zeroWarrant(s *stage) {
	leaked := s.leak("a", "gone-1", "gone-2")
	before := s.snapshot()
	d := s.suspect(leaked...)
	s.want(d.release(s.Context(), make([]reaper.Warrant, 2)), reaper.ErrNoWarrant, reaper.ErrNoWarrant)
	s.holds(before)
}

// Promise 4. Only time makes a warrant expire, hence the sleep.
func expiredWarrant(s *stage) {
	leaked := s.leak("a", "gone-1", "gone-2")
	before := s.snapshot()
	d := s.suspect(leaked...)
	ws := d.confirm()
	time.Sleep(reaper.Freshness + 10*time.Millisecond)
	s.want(d.release(s.Context(), ws), reaper.ErrAgain, reaper.ErrAgain)
	s.holds(before)
	s.want(d.settle(ws), nil, nil)
	s.holds(before, leaked...)
}

// Promise 8.
func cancelledRelease(s *stage) {
	leaked := s.leak("a", "gone-1", "gone-2")
	before := s.snapshot()
	d := s.suspect(leaked...)
	ws := d.confirm()
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	for i, err := range d.release(ctx, ws) {
		if err == nil {
			s.Errorf("answer %d says that the entry is gone", i+1)
		}
	}
	s.holds(before)
}

// Promise 7, 8.
func goneAlready(s *stage) {
	leaked := s.leak("a", "gone-1", "gone-2", "gone-3")
	d := s.suspect(leaked...)
	ws := d.confirm()
	s.free(leaked[1])
	before := s.snapshot()
	s.want(d.settle(ws), nil, nil, nil)
	s.holds(before, leaked[0], leaked[2])
}

// Promise 1, 4.
func givenAway(s *stage) {
	leaked := s.leak("a", "gone-1", "gone-2", "gone-3")
	d := s.suspect(leaked...)
	ws := d.confirm()
	heir := s.giveAway(leaked[1])
	before := s.snapshot()
	s.want(d.settle(ws), nil, reaper.ErrChanged, nil)
	s.holds(before, leaked[0], leaked[2])
	if got := s.list()[Place(heir.Allocation)].Owner.Pod; got != heir.asks.Pod {
		s.Errorf("the address is %s's, want %s's", got, heir.asks.Pod)
	}
}

// Promise 7, 9.
func answers(s *stage) {
	leaked := s.leak("a", "gone-1", "gone-2", "gone-3", "gone-4", "gone-5")
	d := s.suspect(leaked...)
	ws := d.confirm()
	ws[1] = reaper.Warrant{}
	s.giveAway(leaked[2])
	s.free(leaked[3])
	before := s.snapshot()
	delete(before, Place(leaked[0].Allocation))
	s.want(d.settle(ws), nil, reaper.ErrNoWarrant, reaper.ErrChanged, nil, nil)
	s.holds(before, leaked[4])
}
