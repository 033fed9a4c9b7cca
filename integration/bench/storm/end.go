package main

import "context"

// end is what comes when no pod comes or goes any more.
func (s *storm) end(ctx context.Context) error {
	if err := s.reap(ctx); err != nil {
		return err
	}
	if err := s.look(ctx, true); err != nil {
		return err
	}
	living := s.roster.there()
	for _, resident := range living {
		s.roster.leaves(resident)
	}
	before, err := s.left(ctx, living...)
	if err != nil {
		return err
	}
	if err := s.cluster.DeletePods(ctx, namespace); err != nil {
		return err
	}
	if err := s.reap(ctx); err != nil {
		return err
	}
	after, err := s.left(ctx)
	s.tally.leaked, s.tally.left, s.tally.living = before, after, len(living)
	return err
}

// left counts the facts of the store by their kind, but those that are owed to
// the living.
func (s *storm) left(ctx context.Context, living ...*sandbox) (map[string]int, error) {
	v, err := s.ipam.look(ctx)
	for _, resident := range living {
		for what := range s.ipam.owed(resident) {
			delete(v.owners, what)
		}
	}
	counts := map[string]int{}
	for what := range v.owners {
		counts[what.kind]++
	}
	return counts, err
}
