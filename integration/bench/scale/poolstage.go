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
}

// openPools starts a cluster, and fills it. The caller must close it.
func openPools(ctx context.Context, o options, s size, out io.Writer) (*poolStage, error) {
	base, err := openStage(ctx, o, s, cluster.Options{})
	if err != nil {
		return nil, err
	}
	g := &poolStage{base}
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
		g.store.put(ctx, first(tenants, namespaceRecord)),
		g.store.put(ctx, first(s.nodes(), nodeRecord)),
		g.store.put(ctx, first(int(s), func(n int) (record, error) { return podRecord(live(n)) })),
		g.store.put(ctx, first(s.total(), func(n int) (record, error) { return reservationRecord(entry(n)) })),
		g.store.put(ctx, first(s.pools(), s.poolRecord)),
	)
}

// restore implements contents.
func (g *poolStage) restore(ctx context.Context) error {
	err := errors.Join(
		g.store.put(ctx, first(g.size.stale(), func(n int) (record, error) { return reservationRecord(stale(n)) })),
		g.store.put(ctx, first(g.size.pools(), g.size.poolRecord)),
		g.sweep(ctx),
	)
	if err != nil {
		return err
	}
	return g.check(ctx)
}
