package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A blockStage is a stage with what Calico has stored.
type blockStage struct {
	*stage
	form      form
	datastore *calico.Datastore
	stored    store // where Calico's objects are: the API server's etcd or Calico's own
}

// measure is a measurement.
func (f form) measure(ctx context.Context, o options, s size, m *measured, out io.Writer) (err error) {
	g, err := openBlocks(ctx, o, s, f, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	return g.measureWays(ctx, g.ways(), g, m, out)
}

// openBlocks starts a cluster with a Calico datastore, and fills both. The caller must close it.
func openBlocks(ctx context.Context, o options, s size, f form, out io.Writer) (*blockStage, error) {
	crds, err := calico.CRDs(ctx)
	if err != nil {
		return nil, err
	}
	base, err := openStage(ctx, o, s, cluster.Options{CRDs: []string{crds}})
	if err != nil {
		return nil, err
	}
	g := &blockStage{stage: base, form: f}
	if err := g.prepare(ctx); err != nil {
		return nil, errors.Join(err, g.close())
	}
	err = g.stage.fill(ctx, fmt.Sprintf("%d addresses and handles in %d blocks (%s), %d stale of both",
		s.total(), s.blocks(), f.part, s.stale()), out, g.fill)
	if err == nil {
		err = g.check(ctx)
	}
	if err == nil {
		// The API server fills its caches of custom resources on the first request for them.
		_, err = g.ways()[0].run(ctx) // a plan
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// prepare makes Calico's own programs write what exists only once.
func (g *blockStage) prepare(ctx context.Context) (err error) {
	g.stored = g.store
	if !g.form.etcd {
		g.datastore, err = calico.OnKubernetes(ctx, g.cluster)
	} else {
		var e *calico.Etcd
		if e, err = calico.StartEtcd(ctx, calico.EtcdOptions{}); err != nil {
			return err
		}
		g.stored = store{e.Client}
		if err = g.install(ctx, reap.ReleaseNow+reap.InEtcd); err != nil {
			return errors.Join(err, e.Stop())
		}
		if g.datastore, err = calico.OnEtcd(ctx, g.cluster, e); err != nil {
			return errors.Join(err, e.Stop())
		}
	}
	if err != nil {
		return err
	}
	return g.datastore.ApplyPool(ctx, "blocks", blockPool, blockBits)
}

// close ends the cluster and the datastore.
func (g *blockStage) close() error {
	err := g.stage.close()
	if g.datastore != nil && g.datastore.Etcd != nil {
		err = errors.Join(err, g.datastore.Etcd.Stop())
	}
	return err
}

// fill writes everything.
func (g *blockStage) fill(ctx context.Context) error {
	s, f := g.size, g.form
	err := errors.Join(
		g.store.put(ctx, first(tenants, namespaceRecord)),
		g.store.put(ctx, first(s.blocks(), nodeRecord)),
		g.store.put(ctx, first(int(s), func(n int) (record, error) { return blockPodRecord(live(n)) })),
		g.stored.put(ctx, first(s.blocks(), func(n int) (record, error) { return f.affinityRecord(blockID(n)) })),
		g.stored.put(ctx, first(int(s), func(n int) (record, error) { return f.handleRecord(live(n)) })),
		g.putStale(ctx),
	)
	if err != nil || !f.etcd {
		return err
	}
	return errors.Join(
		g.stored.put(ctx, first(s.blocks(), calicoNodeRecord)),
		g.stored.put(ctx, first(int(s), func(n int) (record, error) { return endpointRecord(live(n)) })),
	)
}

// putStale writes the stale handles, and all blocks.
func (g *blockStage) putStale(ctx context.Context) error {
	return errors.Join(
		g.stored.put(ctx, first(g.size.stale(), func(n int) (record, error) { return g.form.handleRecord(stale(n)) })),
		g.stored.put(ctx, first(g.size.blocks(), func(n int) (record, error) {
			return g.form.blockRecord(blockID(n), g.size.content(blockID(n)))
		})),
	)
}

// restore implements contents. It compacts etcd, because old revisions would fill it.
func (g *blockStage) restore(ctx context.Context) error {
	err := errors.Join(g.putStale(ctx), g.sweep(ctx))
	if err == nil {
		err = g.stored.compact(ctx)
	}
	if err != nil {
		return err
	}
	return g.check(ctx)
}
