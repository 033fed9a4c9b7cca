package backendtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// comeBack creates the pod of an entry again, and lets the plugin reserve for
// it. Where that adopts the entry, it is the pod's from now on.
func (s *stage) comeBack(e entry) (entry, error) {
	owner := s.owner(e.asks.Pod.Name)
	s.create(owner)
	r, err := s.store.Reserve(e.pool, owner)
	return entry{r, e.pool, owner}, err
}

// has fails the check unless the entry is listed as its pod's, and whole.
func (s *stage) has(e entry) {
	s.Helper()
	r, ok := s.list()[Place(e.Allocation)]
	if !ok || r.Owner.Pod != e.asks.Pod || r.Interrupted {
		s.Errorf("%s lives and got %s, which is now listed as %+v", e.asks.Pod, Place(e.Allocation), r)
	}
}

// Promise 1, 4. An adoption that the store notices is ErrChanged; one that it
// does not notice has to be found by looking at the owner again.
func returnedBefore(s *stage) {
	leaked := s.leak("a", "back", "gone")
	d := s.suspect(leaked...)
	ws := d.confirm()
	back, err := s.comeBack(leaked[0])
	if err != nil {
		s.Fatal(err)
	}
	before := s.snapshot()
	errs := d.settle(ws)
	s.has(back)
	if Place(back.Allocation) != Place(leaked[0].Allocation) {
		s.Log("the plugin adopts no entries: the pod got another one")
		s.holds(before, leaked...)
		return
	}
	s.holds(before, leaked[1])
	s.want(errs[1:], nil)
	if errs[0] == nil {
		s.Error("an entry that stays counts as released")
	}
	for _, final := range []error{reaper.ErrChanged, reaper.ErrReturned, reaper.ErrKept} {
		if errors.Is(errs[0], final) {
			return
		}
	}
	s.Errorf("the answer is %v, want that it changed, that its owner returned, or that it is kept", errs[0])
}

// renewing calls the hook at the first look at an owner in the midst of the
// release, and releases. It skips the check if the backend does not look.
func (d batch) renewing(ctx context.Context, hook func() error) []error {
	d.Helper()
	ws := d.confirm()
	var once sync.Once
	looked := false
	d.pods.OnCall(func(string) (err error) {
		once.Do(func() {
			looked = true
			err = hook()
		})
		return err
	})
	errs := d.release(ctx, ws)
	d.pods.OnCall(nil)
	if !looked {
		d.Skip("the backend does not look at owners while it releases")
	}
	return errs
}

// Promise 1, 8.
func returnedMeanwhile(s *stage) {
	leaked := s.leak("a", "back")
	d := s.suspect(leaked...)
	before := s.snapshot()
	var back entry
	var failure error
	errs := d.renewing(s.Context(), func() error {
		back, failure = s.comeBack(leaked[0])
		return nil
	})
	if failure != nil {
		s.Fatal(failure)
	}
	s.want(errs, reaper.ErrReturned)
	s.has(back)
	after := s.snapshot()
	for place, content := range before {
		if after[place] != content {
			s.Errorf("%s was %q and is %q", place, content, after[place])
		}
	}
}

// Promise 2.
func unknownMeanwhile(s *stage) {
	leaked := s.leak("a", "gone")
	d := s.suspect(leaked...)
	before := s.snapshot()
	errs := d.renewing(s.Context(), func() error { return errors.New("the API server does not answer") })
	s.want(errs, reaper.ErrAgain)
	if _, held := s.snapshot()[Place(leaked[0].Allocation)]; !held {
		s.Error("it was released although nobody knows of its owner")
	}
	s.want(d.settle(d.confirm()), nil)
	s.holds(before, leaked[0])
}

// interrupt cuts a release short in its midst, and returns the entry as a new
// backend lists it then.
func (s *stage) interrupt(e entry) reaper.Allocation {
	s.Helper()
	ctx, crash := context.WithCancel(s.Context())
	errs := s.suspect(e).renewing(ctx, func() error {
		crash()
		return ctx.Err()
	})
	s.want(errs, reaper.ErrAgain)
	r, ok := s.list()[Place(e.Allocation)]
	if !ok || !r.Interrupted || r.Owner.Pod != e.asks.Pod || r.IP != e.IP {
		s.Fatalf("listed as %+v, want it interrupted, with the owner that it had", r)
	}
	return r
}

// Promise 8.
func interruptedFinished(s *stage) {
	leaked := s.leak("a", "gone", "other")
	before := s.snapshot()
	s.interrupt(leaked[0])
	d := s.suspect(leaked[0])
	s.want(d.settle(d.confirm()), nil)
	s.holds(before, leaked[0])
}

// Promise 6, 8.
func interruptedMended(s *stage) {
	leaked := s.leak("a", "gone", "other")
	before := s.snapshot()
	r := s.interrupt(leaked[0])
	mender, ok := s.store.Backend().(reaper.Mender)
	if !ok {
		s.Fatal("a backend that writes before it looks has to be a Mender")
	}
	for range 2 {
		if err := mender.Mend(s.Context(), r); err != nil {
			s.Errorf("give it back: %v", err)
		}
		s.holds(before)
	}
	d := s.suspect(leaked[0])
	s.want(d.settle(d.confirm()), nil)
	if err := mender.Mend(s.Context(), r); err != nil {
		s.Errorf("give back what is gone: %v", err)
	}
	s.holds(before, leaked[0])
}

// Promise 1, 6.
func concurrent(s *stage) {
	const others = 6
	var leaked, leaving []entry
	for n := range others {
		leaked = append(leaked, s.leak("a", fmt.Sprintf("gone-%d", n))...)
		leaving = append(leaving, s.live("a", fmt.Sprintf("leaving-%d", n))...)
	}
	staying := s.live("a", "staying")
	d := s.suspect(leaked...)
	arrived := make([]entry, others)
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := range others {
			owner := s.owner(fmt.Sprintf("new-%d", n))
			s.create(owner)
			r, err := s.store.Reserve("a", owner)
			if err != nil {
				s.Errorf("reserve: %v", err)
			}
			arrived[n] = entry{r, "a", owner}
		}
	})
	wg.Go(func() {
		for _, e := range leaving {
			if err := s.store.Free(e.pool, e.asks); err != nil {
				s.Errorf("free: %v", err)
			}
		}
	})
	errs := d.settle(d.confirm())
	wg.Wait()
	s.want(errs, make([]error, len(leaked))...)
	for _, e := range append(staying, arrived...) {
		s.has(e)
	}
	if got, want := len(s.list()), len(staying)+others; got != want {
		s.Errorf("%d entries are left, want %d", got, want)
	}
}
