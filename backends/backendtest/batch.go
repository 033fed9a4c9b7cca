package backendtest

import (
	"context"
	"errors"
	"iter"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A batch is a few orphans for one backend to release.
type batch struct {
	*fixture
	backend   ipam.Backend
	entries   []entry
	orphans   []judge.Orphan
	confirmer *reaper.Confirmer
}

// judge lists and judges the entries. It fails the check if one of them is not an
// orphan.
func (s *fixture) judge(entries ...entry) batch {
	s.Helper()
	d := batch{fixture: s, backend: s.store.Backend(), entries: entries}
	var found map[string]judge.Orphan
	listed := d.backend
	if s.adoptable {
		listed = adoptable{d.backend}
	}
	found, d.confirmer = Orphans(s, listed, s.cluster())
	for _, e := range entries {
		o, ok := found[Place(e.Allocation)]
		if !ok {
			s.Fatalf("%s is not an orphan", Place(e.Allocation))
		}
		d.orphans = append(d.orphans, o)
	}
	return d
}

// adoptable lists the allocations of a backend as if each could be adopted, so that their
// warrants expire soon.
type adoptable struct{ ipam.Backend }

// List implements ipam.Backend.
func (b adoptable) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		for pool, err := range b.Backend.List(ctx) {
			for i := range pool.Allocations {
				pool.Allocations[i].Adoption = ipam.Adoptable
			}
			if !yield(pool, err) {
				return
			}
		}
	}
}

// confirm returns a fresh warrant for each orphan.
func (d batch) confirm() []ipam.Warrant {
	d.Helper()
	ws, errs := d.confirmer.Confirm(d.Context(), d.orphans)
	for i, err := range errs {
		if err != nil {
			d.Fatalf("confirm %s: %v", Place(d.entries[i].Allocation), err)
		}
	}
	return ws
}

// release hands the warrants to the backend once.
func (d batch) release(ctx context.Context, ws []ipam.Warrant) []error {
	d.Helper()
	errs := d.backend.Release(ctx, ws)
	if len(errs) != len(ws) {
		d.Fatalf("%d warrants got %d answers", len(ws), len(errs))
	}
	return errs
}

// releaseAll hands the warrants to the backend. Like a run, it then retries the undecided ones
// with fresh warrants.
func (d batch) releaseAll(ws []ipam.Warrant) []error {
	d.Helper()
	errs := d.release(d.Context(), ws)
	for range 4 {
		rest := d
		var where []int
		rest.entries, rest.orphans = nil, nil
		for i, err := range errs {
			if errors.Is(err, ipam.ErrAgain) && !errors.Is(err, ipam.ErrUnfinished) {
				where = append(where, i)
				rest.entries = append(rest.entries, d.entries[i])
				rest.orphans = append(rest.orphans, d.orphans[i])
			}
		}
		if len(where) == 0 {
			break
		}
		for n, err := range rest.release(d.Context(), rest.confirm()) {
			errs[where[n]] = err
		}
	}
	return errs
}

// wantErrors fails the check unless the answers wrap the wanted errors, or are nil where nil is
// wanted.
func (s *fixture) wantErrors(got []error, want ...error) {
	s.Helper()
	if len(got) != len(want) {
		s.Fatalf("%d answers, want %d", len(got), len(want))
	}
	for i := range want {
		if !errors.Is(got[i], want[i]) {
			s.Errorf("answer %d is %v, want %v", i+1, got[i], want[i])
		}
	}
}
