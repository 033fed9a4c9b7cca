// Package storm has pods come and go in a real cluster, with real ADDs and DELs
// and crashes that leave addresses behind, in a pool that is too small for
// leaks, while ip-reaper runs over and over without grace. Half of the pods come
// back under their name. All the time it is checked that every pod that exists
// has what its ADD got; at the end, that nothing else is left. The same storm
// without ip-reaper is the control.
package storm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A size says how much there is of a storm.
type size struct {
	length  time.Duration // after which no pod comes any more,
	rounds  int           // but not before each worker has brought so many
	workers int
	bits    int // of the prefix of the addresses that are fought for
	seed    uint64
}

// A storm is one cluster in which pods come and go, and the reaper at work.
type storm struct {
	cluster *cluster.Cluster
	ipam    ipam
	size    size
	roster  *roster

	// clean runs the reaper once; nil in the control, which has none.
	clean func(context.Context) (reap.Result, error)

	mu       sync.Mutex
	tally    tally
	released []release
}

// newStorm returns a storm in the cluster, which must be empty.
func newStorm(c *cluster.Cluster, i ipam, s size, clean func(context.Context) (reap.Result, error)) *storm {
	return &storm{cluster: c, ipam: i, size: s, roster: newRoster(), clean: clean, tally: tally{exits: map[int]int{}}}
}

// count changes the tally.
func (s *storm) count(change func(*tally)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.tally)
}

// run is the storm and its end: every pod that is left is looked at once more,
// dies without a DEL, and is cleaned up after. The error says that the storm
// could not be run; what it found is in the tally.
func (s *storm) run(ctx context.Context) (tally, error) {
	if err := s.prepare(ctx); err != nil {
		return tally{}, err
	}
	if err := s.blow(ctx); err != nil {
		return tally{}, err
	}
	if err := s.end(ctx); err != nil {
		return tally{}, err
	}
	s.judge()
	return s.tally, nil
}

// prepare makes what pods need, and as many pods that have no part in the storm
// as it may have at a time: a cluster that loses all its pods at once is
// something that a reaper may well refuse to believe.
func (s *storm) prepare(ctx context.Context) error {
	for _, name := range []string{namespace, reaperNamespace} {
		if err := s.cluster.CreateNamespace(ctx, name); err != nil {
			return err
		}
	}
	bystanders := make([]struct{}, s.size.workers*(residents+1)+1)
	err := parallel.Each(16, bystanders, func(i int, _ struct{}) error {
		_, err := s.cluster.CreatePod(ctx, "default", fmt.Sprintf("bystander-%d", i))
		return err
	})
	return errors.Join(err, s.ipam.prepare(ctx))
}

// blow has pods come and go until the time is over, while the reaper runs and
// the store is looked at, over and over.
func (s *storm) blow(ctx context.Context) error {
	weather, calm := context.WithTimeout(ctx, s.size.length)
	defer calm()
	var wg sync.WaitGroup
	var reaping, looking error
	done := make(chan struct{})
	wg.Go(func() {
		defer calm()
		reaping = s.until(done, func() error { return s.reap(ctx) })
	})
	wg.Go(func() {
		defer calm()
		looking = s.until(done, func() error { return s.look(ctx, false) })
	})
	working := parallel.Each(s.size.workers, make([]struct{}, s.size.workers), func(i int, _ struct{}) error {
		defer calm()
		w := newWorker(s, i)
		for n := 0; n < s.size.rounds || weather.Err() == nil; n++ {
			if err := w.round(ctx); err != nil {
				return err
			}
		}
		return w.bury(ctx, w.late)
	})
	close(done)
	wg.Wait()
	return errors.Join(working, reaping, looking)
}

// pause is how long the reaper and the checker rest between two of their turns:
// they come over and over, but the machine is the workers' as well.
const pause = 100 * time.Millisecond

// until does something over and over, until it fails or all is done.
func (s *storm) until(done <-chan struct{}, do func() error) error {
	rest := time.NewTicker(pause)
	defer rest.Stop()
	for {
		if err := do(); err != nil {
			return err
		}
		select {
		case <-done:
			return nil
		case <-rest.C:
		}
	}
}

// look looks at the store once.
func (s *storm) look(ctx context.Context, quiet bool) error {
	before := s.roster.there()
	v, err := s.ipam.look(ctx)
	if err != nil {
		return err
	}
	s.roster.check(s.ipam, before, v, quiet)
	return nil
}
