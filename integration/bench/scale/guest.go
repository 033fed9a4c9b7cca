package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// guests has what another client of the API server notices of ip-reaper.
type guests struct {
	alone, beside latencies // of a run that releases
}

// quiet is how long the other client is measured alone, in each turn.
const quiet = 20 * time.Second

// measureGuest measures another client's latencies, alternately alone and during a run.
func measureGuest(ctx context.Context, o options, s size, _ *measured, out io.Writer) (err error) {
	g, err := openPools(ctx, o, s, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	client, err := newForeigner(ctx, g)
	if err != nil {
		return err
	}
	var all guests
	for range o.turns {
		if err := all.turn(ctx, g, client); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "  guest: alone %s; beside a run %s; ratio of p99 %.2f\n",
		all.alone, all.beside, all.beside.of(99).Seconds()/all.alone.of(99).Seconds())
	return nil
}

// turn measures the other client alone and then during a run.
func (all *guests) turn(ctx context.Context, g *poolStage, client *foreigner) error {
	alone, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	latencies, err := client.load(alone)
	if err != nil {
		return err
	}
	all.alone = append(all.alone, latencies...)

	beside, done := context.WithCancel(ctx)
	defer done()
	var runErr error
	go func() {
		defer done()
		_, runErr = g.reap()(ctx)
	}()
	latencies, err = client.load(beside)
	if err != nil {
		return err
	}
	all.beside = append(all.beside, latencies...)
	if runErr != nil && !errors.Is(runErr, errPartial) {
		return runErr
	}
	return g.restore(ctx)
}
