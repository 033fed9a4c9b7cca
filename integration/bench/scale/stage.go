package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/rights"
)

// A stage is a cluster of one size.
type stage struct {
	options
	size       size
	cluster    *cluster.Cluster
	server     server
	store      store
	kubeconfig string          // of ip-reaper's account, with the shipped rights and no others
	revisions  map[entry]int64 // of the stale overlapping reservations
}

// openStage starts a cluster, whose API server gets more flags, and fills it. The caller
// must close it.
func openStage(ctx context.Context, o options, s size, flags map[string]string, out io.Writer) (_ *stage, err error) {
	g := &stage{options: o, size: s, revisions: map[entry]int64{}}
	if g.cluster, err = cluster.Start(ctx, cluster.Options{Flags: flags}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if g.kubeconfig, err = account(ctx, g.cluster, "whereabouts", "overlapping", "calico"); err != nil {
		return nil, err
	}
	if g.store, err = openStore(g.cluster.EtcdURL); err != nil {
		return nil, err
	}
	if err := g.cluster.StopAPIServer(); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := g.fill(ctx); err != nil {
		return nil, err
	}
	filled := time.Now()
	if err := g.cluster.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	if g.server, err = findServer(g.cluster); err != nil {
		return nil, err
	}
	if err := g.checkPods(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%d pods, %d entries in %d pools, %d overlapping reservations, %d stale of both: filled in %v, served after %v more\n",
		s, s.total(), s.pools(), s.total(), s.stale(), filled.Sub(began).Round(100*time.Millisecond),
		time.Since(filled).Round(100*time.Millisecond))
	return g, g.check(ctx)
}

// account installs ip-reaper's account with the shipped roles of a release, and returns
// its kubeconfig. The account has a certificate, because a token might expire meanwhile.
// API priority and fairness ranks it as the service account that it is.
func account(ctx context.Context, c *cluster.Cluster, backends ...string) (string, error) {
	grant, err := rights.Shipped(rights.Release, backends...)
	if err != nil {
		return "", err
	}
	if _, err := rights.Install(ctx, c, grant); err != nil {
		return "", err
	}
	config, err := c.User("system:serviceaccount:"+rights.Home+":"+rights.Home,
		"system:serviceaccounts", "system:serviceaccounts:"+rights.Home)
	if err != nil {
		return "", err
	}
	return c.KubeconfigFor(config)
}

// close ends the cluster.
func (g *stage) close() error {
	var err error
	if g.store.client != nil {
		err = g.store.Close()
	}
	return errors.Join(err, g.cluster.Stop())
}

// fill writes everything.
func (g *stage) fill(ctx context.Context) error {
	s := g.size
	pods := func(n int) (record, error) {
		return podRecord(entry(n + n/10)) // each tenth entry is followed by one without a pod
	}
	return errors.Join(
		g.store.put(ctx, first(s.tenants(), namespaceRecord), nil),
		g.store.put(ctx, first(s.nodes(), nodeRecord), nil),
		g.store.put(ctx, first(int(s), pods), nil),
		g.store.put(ctx, first(s.total(), func(n int) (record, error) { return reservationRecord(entry(n)) }), g.note),
		g.store.put(ctx, first(s.pools(), s.poolRecord), nil),
	)
}

// note notes the revision of an overlapping reservation if it is stale.
func (g *stage) note(n int, revision int64) {
	if e := entry(n); e.stale() {
		g.revisions[e] = revision
	}
}

// restore brings everything back that a run has taken away, and takes away what it left.
func (g *stage) restore(ctx context.Context) error {
	stale := func(n int) entry { return entry(n*11 + 10) }
	err := errors.Join(
		g.store.put(ctx, first(g.size.stale(), func(n int) (record, error) { return reservationRecord(stale(n)) }),
			func(n int, revision int64) { g.revisions[stale(n)] = revision }),
		g.store.put(ctx, first(g.size.pools(), g.size.poolRecord), nil),
		g.store.clear(ctx, "/registry/events/", "/registry/configmaps/"+rights.Home+"/", "/registry/leases/"+rights.Home+"/"),
	)
	if err != nil {
		return err
	}
	return g.check(ctx)
}

// file is a path in the folder of the cluster.
func (g *stage) file(name string) string { return filepath.Join(g.cluster.Dir, name) }
