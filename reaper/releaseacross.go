package reaper

import "context"

// firstAcross is how many allocations the first batch across pools has.
const firstAcross = MaxAcross / 4

// releaseAcross releases orphans of any pools of one backend, batch by batch. A batch that
// is decided at once makes the next one larger, and any other makes it smaller: the writes
// of a large batch may take longer than warrants are valid.
func (r *run) releaseAcross(ctx context.Context, b BatchReleaser, plan Plan, confirmer *Confirmer, due []int, settled *meter) {
	send := func(ctx context.Context, ws []Warrant) []error {
		return b.ReleaseAcross(ctx, ws, max(1, r.Concurrency))
	}
	for size := firstAcross; len(due) > 0; {
		batch := due[:min(size, len(due))]
		due = due[len(batch):]
		if r.releaseBatch(ctx, send, plan, confirmer, batch) {
			size = min(2*size, MaxAcross)
		} else {
			size = max(size/2, 1)
		}
		settled.add(len(batch))
	}
}
