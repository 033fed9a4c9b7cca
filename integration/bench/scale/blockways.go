package main

import (
	"context"
	"errors"
	"time"
)

// ways returns the ways for the datastore, and with the part calico-peers those of Calico's own
// programs.
func (g *blockStage) ways() []way {
	var env []string
	if g.form.etcd {
		env = []string{"ETCD_ENDPOINTS=" + g.datastore.Etcd.Endpoint}
	}
	plan, run := g.form.part+" plan", g.form.part+" run"
	all := []way{
		{plan, reaperWay, false, g.plan(g.size.total(), g.size.stale(), env...)},
		{run, reaperWay, true, g.reap(env...)},
	}
	if g.parts["calico-peers"] {
		all = append(all, way{run, "calicoctl", true, g.calicoctl}, way{run, controllers, true, g.controllers})
	}
	return all
}

// unlocking is how long each remaining step of calicoctl may take once the limit is over: ip-reaper
// does not work with a locked datastore.
const unlocking = 10 * time.Second

// calicoctl makes calicoctl release, as Calico recommends: lock, check, release from the report,
// unlock.
func (g *blockStage) calicoctl(ctx context.Context) (c cost, err error) {
	report := g.file("report.json")
	began := time.Now()
	for _, args := range [][]string{
		{"datastore", "migrate", "lock"},
		{"ipam", "check", "--output=" + report},
		{"ipam", "release", "--from-report=" + report},
		{"datastore", "migrate", "unlock"},
	} {
		path, args := g.datastore.Command(args...)
		left := max(g.limit-time.Since(began), unlocking)
		step, stepErr := measure(ctx, left, command{path: path, args: args})
		c.cpu, c.peak, err = c.cpu+step.cpu, max(c.peak, step.peak), errors.Join(err, stepErr)
	}
	c.wall = time.Since(began)
	return c, err
}

const (
	controllers = "kube-controllers"
	grace       = time.Second // of kube-controllers; without one it releases nothing
)

// controllers lets kube-controllers release until no handle of a stale address is left.
func (g *blockStage) controllers(ctx context.Context) (cost, error) {
	path, args, env, err := g.datastore.ControllersCommand(ctx, grace, g.file("status.json"))
	if err != nil {
		return cost{}, err
	}
	return measureUntil(ctx, g.limit, command{path, args, env}, func(ctx context.Context) (bool, error) {
		n, err := g.stored.count(ctx, g.form.handles)
		return n <= int(g.size), err
	})
}
