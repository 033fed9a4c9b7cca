package backendtest

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 1.
func bound(s *stage) {
	owner := s.owner("gone")
	both := []entry{s.reserve("a", owner), s.reserve("b", owner)}
	alone := s.leak("a", "other")
	listed := s.list()
	group := func(e entry) string { return listed[Place(e.Allocation)].Group }
	if group(both[0]) == "" {
		s.Skip("the backend binds nothing")
	}
	if group(both[1]) != group(both[0]) || group(alone[0]) == group(both[0]) {
		s.Fatalf("the bonds are %q and %q, and that of another sandbox is %q", group(both[0]), group(both[1]), group(alone[0]))
	}

	stranger := reaper.Pod{Ref: reaper.PodRef{Namespace: "default", Name: "stranger"}, Addresses: []netip.Addr{both[0].IP}}
	s.pods.Add(stranger)
	orphans, _ := Orphans(s, s.store.Backend(), s.pods)
	for _, e := range both {
		if _, ok := orphans[Place(e.Allocation)]; ok {
			s.Errorf("%s is an orphan, and a pod has %s", Place(e.Allocation), both[0].IP)
		}
	}
	s.pods.Remove(stranger.Ref)

	before := s.snapshot()
	d := s.suspect(both...)
	s.want(d.settle(d.confirm()), nil, nil)
	s.holds(before, both...)
}

// Promise 7, 8.
func unfinished(s *stage) {
	fumbler, ok := s.store.(Fumbler)
	if !ok {
		s.Skip("the harness is no Fumbler")
	}
	s.live("a", "live")
	leaked := s.leak("a", "gone")
	before := s.snapshot()
	d := s.suspect(leaked...)
	fumbler.Fumble()
	errs := d.settle(d.confirm())
	if errs[0] == nil {
		if left := s.emptyHandles(); len(left) > 0 {
			s.Fatalf("the answer does not say that there is left %+v", left)
		}
		s.Skip("the backend's release is one write")
	}
	s.want(errs, reaper.ErrUnfinished)
	if _, held := s.snapshot()[Place(leaked[0].Allocation)]; held {
		s.Error("the answer says that the entry is gone, and it is not")
	}

	if !slices.ContainsFunc(s.emptyHandles(), func(r reaper.Allocation) bool { return r.Token != "" && !r.IP.IsValid() }) {
		s.Fatalf("the remnants are %+v, want one with a token and no address", s.emptyHandles())
	}
	s.runs(0, time.Hour)
	if left := s.emptyHandles(); len(left) != 0 {
		s.Errorf("after two runs there still are %+v", left)
	}
	s.holds(before, leaked...)
}

// empty handles are the listed entries that hold no address.
func (s *stage) emptyHandles() []reaper.Allocation {
	s.Helper()
	var all []reaper.Allocation
	for _, r := range s.list() {
		if r.EmptyHandle {
			all = append(all, r)
		}
	}
	return all
}

// runs runs at these times from now, with one memory.
func (s *stage) runs(after ...time.Duration) {
	s.Helper()
	var notes memo
	for _, d := range after {
		at := time.Now().Add(d)
		_, err := reaper.Run(s.Context(), reaper.Options{
			Policy: Impatient(), Backends: []reaper.Backend{s.store.Backend()}, Cluster: s.pods, Ledgers: &notes, Journals: &Journal{},
			Now: func() time.Time { return at }, Logger: slog.New(slog.DiscardHandler), Concurrency: 1,
		})
		if err != nil {
			s.Errorf("run: %v", err)
		}
	}
}

// A memo is a reaper.Ledgers.
type memo struct{ ledger reaper.Ledger }

// Load implements reaper.Ledgers.
func (m *memo) Load(context.Context) (reaper.Ledger, error) { return m.ledger, nil }

// Save implements reaper.Ledgers.
func (m *memo) Save(_ context.Context, l reaper.Ledger) error {
	m.ledger = l
	return nil
}
