package backendtest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// recreate creates the pod of an entry again, and lets the plugin allocate for it.
// If the plugin adopts the entry, the result has the same place.
func (s *fixture) recreate(e entry) (entry, error) {
	owner := s.owner(e.requester.Pod.Name)
	s.create(owner)
	r, err := s.store.Reserve(e.pool, owner)
	return entry{r, e.pool, owner}, err
}

// wantListed fails the check unless the entry is listed with its pod and without Interrupted.
func (s *fixture) wantListed(e entry) {
	s.Helper()
	r, ok := s.list()[Place(e.Allocation)]
	if !ok || r.Owner.Pod != e.requester.Pod || r.Interrupted {
		s.Errorf("pod %s got %s, which is listed as %+v", e.requester.Pod, Place(e.Allocation), r)
	}
}

// Promise 1, 4. If the store shows the adoption, the answer is ErrChanged. Otherwise the
// backend must check the owner again.
func returnedBefore(s *fixture) {
	leaked := s.leak("a", "back", "gone")
	d := s.judge(leaked...)
	ws := d.confirm()
	back, err := s.recreate(leaked[0])
	if err != nil {
		s.Fatal(err)
	}
	before := s.snapshot()
	errs := d.releaseAll(ws)
	s.wantListed(back)
	if Place(back.Allocation) != Place(leaked[0].Allocation) {
		s.Log("the plugin does not adopt entries: the pod got another one")
		s.wantContent(before, leaked...)
		return
	}
	s.wantContent(before, leaked[1])
	s.wantErrors(errs[1:], nil)
	if errs[0] == nil {
		s.Error("the answer is nil, and the store still has the entry")
	}
	for _, final := range []error{ipam.ErrChanged, ipam.ErrReturned, ipam.ErrKept} {
		if errors.Is(errs[0], final) {
			return
		}
	}
	s.Errorf("the answer is %v, want ErrChanged, ErrReturned or ErrKept", errs[0])
}

// attached creates a pod whose sandbox has an address, as libcni's cache says.
func (s *fixture) attached(name string, ip netip.Addr) {
	owner := s.owner(name)
	a := ipam.Attachment{Sandbox: owner.Sandbox, Interface: "eth0", IPs: []netip.Addr{ip}, File: "cache"}
	s.pods.AddSandboxes(census.Sandbox{ID: owner.Sandbox, Pod: owner.Pod, Ready: true, Attachments: []ipam.Attachment{a}})
}

// Promise 1. The store has the address for a sandbox that is gone, and another sandbox has it: at the first
// look, or only at the second.
func attachedElsewhere(s *fixture) {
	if _, ok := s.store.(NodeStore); !ok {
		s.Skip("there are no sandboxes")
	}
	leaked := s.leak("a", "first", "second", "gone")
	s.attached("has-the-first", leaked[0].IP)
	b, node := s.store.Backend(), s.cluster()
	orphans, confirmer := Orphans(s, b, node)
	var due []judge.Orphan
	for i, e := range leaked {
		o, ok := orphans[Place(e.Allocation)]
		if ok != (i > 0) {
			s.Fatalf("%s is an orphan: %v", Place(e.Allocation), ok)
		}
		due = append(due, o)
	}
	s.attached("has-the-second", leaked[1].IP)
	before := s.snapshot()
	ws, errs := confirmer.Confirm(s.Context(), due[1:])
	s.wantErrors(errs[1:], nil)
	if !errors.Is(errs[0], ipam.ErrReturned) {
		s.Errorf("the second look: %v, want that its owner returned", errs[0])
	}
	s.wantErrors(b.Release(s.Context(), ws[1:]), nil)
	s.wantContent(before, leaked[2])
}

// releaseWithHook releases, and calls the hook when the backend first looks at an owner. It
// skips the check if the backend never does.
func (d batch) releaseWithHook(ctx context.Context, hook func() error) []error {
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
		d.Skip("the backend does not look at owners during a release")
	}
	return errs
}

// Promise 2. If the owner's state is unknown during the release, its entry stays.
func unknownMeanwhile(s *fixture) {
	leaked := s.leak("a", "gone")
	d := s.judge(leaked...)
	before := s.snapshot()
	errs := d.releaseWithHook(s.Context(), func() error { return errors.New("the API server does not answer") })
	s.wantErrors(errs, ipam.ErrAgain)
	if _, held := s.snapshot()[Place(leaked[0].Allocation)]; !held {
		s.Error("the entry was released, although its owner is unknown")
	}
	d.confirmer.Forget()
	s.wantErrors(d.releaseAll(d.confirm()), nil)
	s.wantContent(before, leaked[0])
}

// skipOnNode skips a check of releases in several writes, between which an owner may come back:
// on a node, the owner is a sandbox, whose ID is never reused.
func (s *fixture) skipOnNode() {
	s.Helper()
	if _, ok := s.store.(NodeStore); ok {
		s.Skip("no sandbox comes back")
	}
}

// interrupt cancels a release halfway. It returns the entry as listed by a new backend.
func (s *fixture) interrupt(e entry) ipam.Allocation {
	s.Helper()
	s.skipOnNode()
	ctx, crash := context.WithCancel(s.Context())
	errs := s.judge(e).releaseWithHook(ctx, func() error {
		crash()
		return ctx.Err()
	})
	s.wantErrors(errs, ipam.ErrAgain)
	r, ok := s.list()[Place(e.Allocation)]
	if !ok || !r.Interrupted || r.Owner.Pod != e.requester.Pod || r.IP != e.IP {
		s.Fatalf("listed as %+v, want it Interrupted with the same owner", r)
	}
	return r
}

// mend undoes the release of an entry if it was interrupted.
func (s *fixture) mend(e entry) {
	s.Helper()
	r := s.list()[Place(e.Allocation)]
	if !r.Interrupted {
		return
	}
	mender, ok := s.store.Backend().(ipam.Mender)
	if !ok {
		s.Fatal("the backend leaves an Interrupted entry, and is not an ipam.Mender")
	}
	if err := mender.Mend(s.Context(), r); err != nil {
		s.Error(err)
	}
}

// Promise 6, 8. Mend undoes an interrupted release.
func interruptedMended(s *fixture) {
	leaked := s.leak("a", "gone", "other")
	before := s.snapshot()
	r := s.interrupt(leaked[0])
	mender, ok := s.store.Backend().(ipam.Mender)
	if !ok {
		s.Fatal("the backend leaves an Interrupted entry, and is not an ipam.Mender")
	}
	for range 2 {
		if err := mender.Mend(s.Context(), r); err != nil {
			s.Errorf("Mend: %v", err)
		}
		s.wantContent(before)
	}
	d := s.judge(leaked[0])
	s.wantErrors(d.releaseAll(d.confirm()), nil)
	if err := mender.Mend(s.Context(), r); err != nil {
		s.Errorf("Mend of a released entry: %v", err)
	}
	s.wantContent(before, leaked[0])
}

// Promise 1, 6. Writes of the plugin during a release are not lost.
func concurrent(s *fixture) {
	const others = 6
	var leaked, leaving []entry
	for n := range others {
		leaked = append(leaked, s.leak("a", fmt.Sprintf("gone-%d", n))...)
		leaving = append(leaving, s.live("a", fmt.Sprintf("leaving-%d", n))...)
	}
	staying := s.live("a", "staying")
	d := s.judge(leaked...)
	arrived := make([]entry, others)
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := range others {
			owner := s.owner(fmt.Sprintf("new-%d", n))
			s.create(owner)
			r, err := s.store.Reserve("a", owner)
			if err != nil {
				s.Errorf("allocate: %v", err)
			}
			arrived[n] = entry{r, "a", owner}
		}
	})
	wg.Go(func() {
		for _, e := range leaving {
			if err := s.store.Free(e.pool, e.requester); err != nil {
				s.Errorf("free: %v", err)
			}
		}
	})
	errs := d.releaseAll(d.confirm())
	wg.Wait()
	s.wantErrors(errs, make([]error, len(leaked))...)
	for _, e := range append(staying, arrived...) {
		s.wantListed(e)
	}
	if got, want := len(s.list()), len(staying)+others; got != want {
		s.Errorf("the store has %d entries, want %d", got, want)
	}
}
