package backendtest

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// Promise 1. Allocations of one group are released together or not at all.
func group(s *fixture) {
	owner := s.owner("gone")
	both := []entry{s.allocate("a", owner), s.allocate("b", owner)}
	alone := s.leak("a", "other")
	listed := s.list()
	group := func(e entry) string { return listed[Place(e.Allocation)].Group }
	for _, e := range both {
		if of := group(e); of != "" && of == group(alone[0]) {
			s.Fatalf("%s has the group %q of another sandbox", Place(e.Allocation), of)
		}
	}
	if group(both[0]) == "" || group(both[0]) != group(both[1]) {
		s.Skip("the backend has no groups, or only with allocations of another backend")
	}

	stranger := census.Pod{Ref: ipam.PodRef{Namespace: "default", Name: "stranger"}, Addresses: []netip.Addr{both[0].IP}}
	s.pods.Add(stranger)
	orphans, _ := Orphans(s, s.store.Backend(), s.cluster())
	for _, e := range both {
		if _, ok := orphans[Place(e.Allocation)]; ok {
			s.Errorf("%s is an orphan, although a pod shows the address %s of its group", Place(e.Allocation), both[0].IP)
		}
	}
	s.pods.Remove(stranger.Ref)

	before := s.snapshot()
	d := s.judge(both...)
	s.wantErrors(d.releaseAll(d.confirm()), nil, nil)
	s.wantContent(before, both...)
}

// Promise 7, 8. A later run removes the empty handle that a failed second write left behind.
func unfinished(s *fixture) {
	fumbler, ok := s.store.(Fumbler)
	if !ok {
		s.Skip("the harness is not a Fumbler")
	}
	s.live("a", "live")
	leaked := s.leak("a", "gone")
	before := s.snapshot()
	d := s.judge(leaked...)
	fumbler.Fumble()
	errs := d.releaseAll(d.confirm())
	if errs[0] == nil {
		if left := s.emptyHandles(); len(left) > 0 {
			s.Fatalf("the answer is nil, and the store still has %+v", left)
		}
		s.Skip("the backend's release is one write")
	}
	s.wantErrors(errs, ipam.ErrUnfinished)
	if _, held := s.snapshot()[Place(leaked[0].Allocation)]; held {
		s.Error("the answer is ErrUnfinished, and the store still has the entry")
	}

	if !slices.ContainsFunc(s.emptyHandles(), func(r ipam.Allocation) bool { return r.Token != "" && !r.IP.IsValid() }) {
		s.Fatalf("the empty handles are %+v, want one with a token and no address", s.emptyHandles())
	}
	s.runs(0, time.Hour)
	if left := s.emptyHandles(); len(left) != 0 {
		s.Errorf("after two runs the store still has %+v", left)
	}
	s.wantContent(before, leaked...)
}

// emptyHandles returns the listed empty handles.
func (s *fixture) emptyHandles() []ipam.Allocation {
	s.Helper()
	var all []ipam.Allocation
	for _, r := range s.list() {
		if r.EmptyHandle {
			all = append(all, r)
		}
	}
	return all
}

// runs executes runs at the given times from now, with one ledger.
func (s *fixture) runs(after ...time.Duration) {
	s.Helper()
	var ledgers fakeLedgers
	for _, d := range after {
		at := time.Now().Add(d)
		_, err := reaper.Run(s.Context(), reaper.Options{
			Policy: impatientWithoutNodes(), Backends: []ipam.Backend{s.store.Backend()}, Cluster: s.cluster(), Ledgers: &ledgers, Journals: &Journal{},
			Now: func() time.Time { return at }, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			s.Errorf("run: %v", err)
		}
	}
}

// fakeLedgers is a ledger.Store in memory.
type fakeLedgers struct{ ledger ledger.Ledger }

// Load implements ledger.Store.
func (m *fakeLedgers) Load(context.Context) (ledger.Ledger, error) { return m.ledger, nil }

// Changed implements ledger.Store.
func (*fakeLedgers) Changed(context.Context) (bool, error) { return false, nil }

// Capacity implements ledger.Store.
func (*fakeLedgers) Capacity() int { return 1 << 20 }

// Save implements ledger.Store.
func (m *fakeLedgers) Save(_ context.Context, l ledger.Ledger) error {
	m.ledger = l
	return nil
}
