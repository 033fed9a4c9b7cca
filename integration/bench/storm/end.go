package storm

import "context"

// end is what comes when no pod comes or goes any more.
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
			s.tally.left++
		}
	}
	return err
}
