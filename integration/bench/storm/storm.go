// Package storm makes pods come and go in a real cluster, with real ADDs and DELs and crashes that
// leave addresses behind, in a pool that is too small for leaks, while ip-reaper runs repeatedly
// without a grace period. Half of the pods come back under their name. It keeps checking that every
// existing pod has what its ADD got, and in the end that nothing else is left.
package storm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

const (
	workers = 3  // that make pods come and go
	bits    = 27 // of the prefix of the contested addresses
	seed    = 1
)

// A storm is one cluster in which pods come and go, and the reaper at work.
type storm struct {
	cluster *cluster.Cluster
	ipam    ipam
	rounds  int // of each worker
	roster  *roster
	clean   func(context.Context) (reap.Result, error) // runs the reaper once

	mu       sync.Mutex
	tally    Tally
	released []release
}

// OfWhereabouts runs a storm in an empty cluster, with Whereabouts' plugin. Each worker makes this
// many pods.
func OfWhereabouts(ctx context.Context, c *cluster.Cluster, rounds int) (Tally, error) {
	return run(ctx, c, newWhereabouts(c), rounds)
}

// OfCalico is OfWhereabouts with Calico's plugin.
func OfCalico(ctx context.Context, d *calico.Datastore, rounds int) (Tally, error) {
	c, err := newCalico(ctx, d)
	if err != nil {
		return Tally{}, err
	}
	return run(ctx, d.Cluster, c, rounds)
}

// run runs the storm and its end: every remaining pod is checked once more, dies without a DEL, and
// its leaks are released. The error says that the storm could not be run; what it found is in the
// tally.
func run(ctx context.Context, c *cluster.Cluster, i ipam, rounds int) (Tally, error) {
	clean, err := reaper(c)
	if err != nil {
		return Tally{}, err
	}
	s := &storm{cluster: c, ipam: i, rounds: rounds, roster: newRoster(), clean: clean}
	for _, part := range []func(context.Context) error{s.prepare, s.blow, s.end} {
		if err := part(ctx); err != nil {
			return Tally{}, err
		}
	}
	s.judge()
	return s.tally, nil
}

// count changes the tally.
func (s *storm) count(change func(*Tally)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.tally)
}

// prepare creates what pods need, and as many bystanders as the storm may have pods at a time: a
// reaper may well refuse to believe in a cluster that loses all its pods at once.
func (s *storm) prepare(ctx context.Context) error {
	for _, name := range []string{namespace, reaperNamespace} {
		if err := s.cluster.CreateNamespace(ctx, name); err != nil {
			return err
		}
	}
	bystanders := make([]struct{}, workers*(residents+1)+1)
	return cluster.Each(16, bystanders, func(i int, _ struct{}) error {
		_, err := s.cluster.CreatePod(ctx, "default", fmt.Sprintf("bystander-%d", i))
		return err
	})
}

// blow makes pods come and go, while the reaper runs and the store is checked, repeatedly.
func (s *storm) blow(ctx context.Context) error {
	var wg sync.WaitGroup
	var reaping, looking error
	done := make(chan struct{})
	wg.Go(func() { reaping = s.until(done, func() error { return s.reap(ctx) }) })
	wg.Go(func() { looking = s.until(done, func() error { return s.look(ctx, false) }) })
	working := cluster.Each(workers, make([]struct{}, workers), func(i int, _ struct{}) error {
		w := newWorker(s, i)
		for range s.rounds {
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

// pause is how long the reaper and the checker rest between turns, to leave some of the machine to
// the workers.
const pause = 100 * time.Millisecond

// until does something repeatedly, until it fails or everything is done.
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

// look checks the store once.
func (s *storm) look(ctx context.Context, quiet bool) error {
	before := s.roster.there()
	v, err := s.ipam.look(ctx)
	if err != nil {
		return err
	}
	s.roster.check(s.ipam, before, v, quiet)
	return nil
}

// end runs when no pod comes or goes any more.
func (s *storm) end(ctx context.Context) error {
	if err := s.reap(ctx); err != nil {
		return err
	}
	if err := s.look(ctx, true); err != nil {
		return err
	}
	for _, resident := range s.roster.there() {
		s.roster.leaves(resident)
	}
	if err := s.cluster.DeletePods(ctx, namespace); err != nil {
		return err
	}
	if err := s.reap(ctx); err != nil {
		return err
	}
	v, err := s.ipam.look(ctx)
	for what := range v.owners {
		if what.kind != kindHandle {
			s.tally.Left++
		}
	}
	return err
}
