package main

import (
	"context"
	"errors"
	"flag"
	"io"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// runPools is the program for Whereabouts.
func runPools(ctx context.Context, args []string, out io.Writer) (err error) {
	var size poolSize
	flags := flag.NewFlagSet("calls whereabouts", flag.ContinueOnError)
	flags.IntVar(&size.pools, "pools", 4, "pools that the entries are in")
	flags.IntVar(&size.live, "live", 1000, "entries whose pod is alive, and reservations")
	flags.IntVar(&size.stale, "stale", 1000, "entries whose pod is gone, and reservations")
	concurrency := flags.Int("concurrency", 32, "what ip-reaper is told")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := size.check(); err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	p, err := proxy.Start(c.Config)
	if err != nil {
		return err
	}
	defer p.Stop()
	counted, err := c.KubeconfigFor(p.Config(c.Config))
	if err != nil {
		return err
	}
	binary, err := assets.Path("ip-reaper")
	if err != nil {
		return err
	}
	m := poolMeasure{binary: binary, dir: c.Dir, concurrency: *concurrency}
	s := poolStock{c, size}
	if err := s.fill(ctx); err != nil {
		return err
	}
	through, err := m.run(ctx, counted)
	if err != nil {
		return err
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	if err := s.leak(ctx); err != nil {
		return err
	}
	direct, err := m.run(ctx, c.Kubeconfig)
	if err != nil {
		return err
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	return tellPools(out, size, p, through, direct)
}
