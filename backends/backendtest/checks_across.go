package backendtest

import (
	"context"
	"errors"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// leakAcross allocates addresses of two pools for pods that do not exist, alongside addresses
// of pods that do.
func (s *fixture) leakAcross() []entry {
	s.Helper()
	s.live("a", "live-1")
	s.live("b", "live-2")
	return append(s.leak("a", "gone-1", "gone-2", "gone-3"), s.leak("b", "gone-4", "gone-5", "gone-6")...)
}

// Promise 1, 4, 6, 7, 9. Each warrant gets its own answer, and nothing else is touched: the
// zero warrant releases nothing, an entry that the plugin freed counts as released, and one
// that it gave to another pod stays.
func releaseAcross(s *fixture) {
	leaked := s.leakAcross()
	d := s.judge(leaked...)
	ws := d.confirm()
	ws[1] = ipam.Warrant{}
	s.free(leaked[2])
	s.giveAway(leaked[4])
	before := s.snapshot()
	s.wantErrors(d.releaseAll(ws), nil, ipam.ErrNoWarrant, nil, nil, ipam.ErrChanged, nil)
	s.wantContent(before, leaked[0], leaked[3], leaked[5])
}

// Promise 1, 4, 8. The backend checks no owner before the last of the writes that make an
// adoption visible: the first check of a release sees all owners that have come back by then.
func allReturnedMeanwhile(s *fixture) {
	s.skipOnNode()
	leaked := s.leakAcross()
	d := s.judge(leaked...)
	before := s.snapshot()
	back := make([]entry, len(leaked))
	var failure error
	errs := d.releaseWithHook(s.Context(), func() error {
		for i, e := range leaked {
			var err error
			back[i], err = s.recreate(e)
			failure = errors.Join(failure, err)
		}
		return nil
	})
	if failure != nil {
		s.Fatal(failure)
	}
	if len(errs) != len(leaked) {
		s.Fatalf("%d answers, want %d", len(errs), len(leaked))
	}
	for i, err := range errs {
		if errors.Is(err, ipam.ErrAgain) { // on a busy machine, the hook took longer than a look may
			_, again := d.confirmer.Confirm(s.Context(), d.orphans[i:i+1])
			err = again[0]
			s.mend(leaked[i])
		}
		if !errors.Is(err, ipam.ErrReturned) {
			s.Errorf("answer %d is %v, want ErrReturned", i+1, err)
		}
		s.wantListed(back[i])
	}
	after := s.snapshot()
	for place, content := range before {
		if after[place] != content {
			s.Errorf("%s was %q and is now %q", place, content, after[place])
		}
	}
}

// Promise 2, 9. An owner that cannot be read keeps its own entry, and no other.
func oneUnknownMeanwhile(s *fixture) {
	leaked := s.leakAcross()
	d := s.judge(leaked...)
	ws := d.confirm()
	before := s.snapshot()
	asked := false
	s.pods.OnCall(func(call string) error {
		if !strings.HasSuffix(call, " "+leaked[2].requester.Pod.String()) {
			return nil
		}
		asked = true
		return errors.New("the API server does not answer")
	})
	errs := d.release(s.Context(), ws)
	s.pods.OnCall(nil)
	if !asked {
		s.Skip("the backend does not look at owners one by one during a release")
	}
	s.wantErrors(errs, nil, nil, ipam.ErrAgain, nil, nil, nil)
	if _, held := s.snapshot()[Place(leaked[2].Allocation)]; !held {
		s.Error("the entry was released, although its owner is unknown")
	}
	s.wantErrors(d.releaseAll(d.confirm()), make([]error, len(leaked))...)
	s.wantContent(before, leaked...)
}

// Promise 8. A crash cuts all releases of a call short. The next release finishes them.
func allInterrupted(s *fixture) {
	s.skipOnNode()
	leaked := s.leakAcross()
	before := s.snapshot()
	ctx, crash := context.WithCancel(s.Context())
	errs := s.judge(leaked...).releaseWithHook(ctx, func() error {
		crash()
		return ctx.Err()
	})
	listed := s.list()
	for i, e := range leaked {
		if !errors.Is(errs[i], ipam.ErrAgain) || !errors.Is(errs[i], ipam.ErrBegun) {
			s.Errorf("answer %d is %v, want ErrAgain and ErrBegun", i+1, errs[i])
		}
		if r := listed[Place(e.Allocation)]; !r.Interrupted || r.Owner.Pod != e.requester.Pod {
			s.Errorf("%s is listed as %+v, want it Interrupted with the same owner", Place(e.Allocation), r)
		}
	}
	d := s.judge(leaked...)
	s.wantErrors(d.releaseAll(d.confirm()), make([]error, len(leaked))...)
	s.wantContent(before, leaked...)
}
