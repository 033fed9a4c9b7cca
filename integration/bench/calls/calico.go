package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// runBlocks is the program for Calico.
func runBlocks(ctx context.Context, args []string, out io.Writer) (err error) {
	var size sandboxSize
	flags := flag.NewFlagSet("calls calico", flag.ContinueOnError)
	flags.IntVar(&size.leaked, "leaked", 1000, "sandboxes whose pod is gone")
	flags.IntVar(&size.live, "live", 100, "sandboxes whose pod is alive")
	flags.IntVar(&size.nodes, "nodes", 10, "nodes that they are on")
	wait := flags.Duration("wait", 60*time.Second, "the longest that kube-controllers may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := size.check(); err != nil {
		return err
	}
	crds, err := calico.CRDs(ctx)
	if err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{CRDs: []string{crds}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	e, err := calico.StartEtcd(ctx, calico.EtcdOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Stop()) }()

	fmt.Fprintf(out, "%d leaked and %d live addresses, one a sandbox, in %d blocks of %d\n",
		size.leaked, size.live, size.blocks(), blockSize)
	d, err := calico.OnKubernetes(ctx, c)
	if err != nil {
		return err
	}
	if err := compare(ctx, out, "Kubernetes datastore", d, size, *wait); err != nil {
		return err
	}
	if err := c.Reset(ctx); err != nil {
		return err
	}
	if d, err = calico.OnEtcd(ctx, c, e); err != nil {
		return err
	}
	return compare(ctx, out, "etcd datastore", d, size, *wait)
}

// compare has each of the programs release the same leaks, and prints what it
// took.
func compare(ctx context.Context, out io.Writer, title string, d *calico.Datastore, size sandboxSize, wait time.Duration) error {
	p, err := proxy.Start(d.Cluster.Config)
	if err != nil {
		return err
	}
	defer p.Stop()
	kubeconfig, err := d.Cluster.KubeconfigFor(p.Config(d.Cluster.Config))
	if err != nil {
		return err
	}
	through, err := d.Through(kubeconfig)
	if err != nil {
		return err
	}
	s := &blockStock{Datastore: d, size: size}
	if err := s.fill(ctx); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	m := blockMeasure{s, p, through, kubeconfig}
	var costs []blockCost
	for _, way := range []struct {
		name    string
		release func(context.Context) error
	}{
		{"ip-reaper", m.reaper},
		{"calicoctl", m.calicoctl},
		{"kube-controllers", func(ctx context.Context) error { return m.controllers(ctx, wait) }},
	} {
		if err := s.leak(ctx); err != nil {
			return fmt.Errorf("leak: %w", err)
		}
		c, err := m.of(ctx, way.release)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		c.name = way.name
		costs = append(costs, c)
	}
	return tellBlocks(out, title, size, costs)
}
