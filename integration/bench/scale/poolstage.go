package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// A poolStage is a stage with what Whereabouts has stored.
type poolStage struct {
	*stage
	revisions map[entry]int64 // of the stale overlapping reservations
}

// openPools starts a cluster, whose API server gets more flags, and fills it. The caller
// must close it.
func openPools(ctx context.Context, o options, s size, flags map[string]string, out io.Writer) (*poolStage, error) {
	base, err := openStage(ctx, o, s, cluster.Options{Flags: flags})
	if err != nil {
		return nil, err
	}
	g := &poolStage{base, map[entry]int64{}}
	err = g.stage.fill(ctx, fmt.Sprintf("%d entries in %d pools, %d overlapping reservations, %d stale of both",
		s.total(), s.pools(), s.total(), s.stale()), out, g.fill)
	if err == nil {
		err = g.check(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// fill writes everything.
func (g *poolStage) fill(ctx context.Context) error {
	s := g.size
	return errors.Join(
		g.store.put(ctx, first(s.tenants(), namespaceRecord), nil),
		g.store.put(ctx, first(s.nodes(), nodeRecord), nil),
		g.store.put(ctx, first(int(s), func(n int) (record, error) { return podRecord(live(n)) }), nil),
		g.store.put(ctx, first(s.total(), func(n int) (record, error) { return reservationRecord(entry(n)) }), g.note),
		g.store.put(ctx, first(s.pools(), s.poolRecord), nil),
	)
}

// note notes the revision of an overlapping reservation if it is stale.
func (g *poolStage) note(n int, revision int64) {
	if e := entry(n); e.stale() {
		g.revisions[e] = revision
	}
}

// restore implements contents.
func (g *poolStage) restore(ctx context.Context) error {
	err := errors.Join(
		g.store.put(ctx, first(g.size.stale(), func(n int) (record, error) { return reservationRecord(stale(n)) }),
			func(n int, revision int64) { g.revisions[stale(n)] = revision }),
		g.store.put(ctx, first(g.size.pools(), g.size.poolRecord), nil),
		g.sweep(ctx),
	)
	if err != nil {
		return err
	}
	return g.check(ctx)
}
