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

// Promise 8. Releasing a released entry succeeds.
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
	s.wantErrors(d.release(ctx, ws), ipam.ErrAgain, ipam.ErrAgain)
	s.wantContent(before)
}
