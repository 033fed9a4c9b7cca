package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"golang.org/x/time/rate"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A stage is a cluster of one size.
type stage struct {
	options
	size       size
	cluster    *cluster.Cluster
	server     server
	store      store
	limited    *proxy.Proxy // between ip-reaper and the API server; nil without a rate
	kubeconfig string       // of ip-reaper's account, with the shipped rights and no others
}

// contents is what a store has on a stage.
type contents interface {
	// check returns an error unless everything from the beginning is there.
	check(ctx context.Context) error

	// left counts the stale things that were released, and those that were not. It returns an error
	// if anything live is gone, or if there is anything new.
	left(ctx context.Context) (released, left int, err error)

	// restore brings back everything that a run has removed, and removes what it left behind.
	restore(ctx context.Context) error
}

// openStage starts a cluster. The caller must close it.
func openStage(ctx context.Context, o options, s size, c cluster.Options) (_ *stage, err error) {
	g := &stage{options: o, size: s}
	if g.cluster, err = cluster.Start(ctx, c); err != nil {
		return nil, err
	}
	if err = errors.Join(g.account(ctx, "whereabouts", "overlapping", "calico"), g.install(ctx, reap.ReleaseNow)); err == nil {
		g.store, err = openStore(g.cluster.EtcdURL)
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// fill calls fill to write everything while the API server is down, and prints what that was and
// how long it took.
func (g *stage) fill(ctx context.Context, what string, out io.Writer, fill func(context.Context) error) error {
	if err := g.cluster.StopAPIServer(); err != nil {
		return err
	}
	began := time.Now()
	if err := fill(ctx); err != nil {
		return err
	}
	filled := time.Now()
	if err := g.cluster.StartAPIServer(ctx); err != nil {
		return err
	}
	var err error
	if g.server, err = findServer(g.cluster); err != nil {
		return err
	}
	if err := g.checkPods(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d pods, %s: filled in %v, served after %v more\n", g.size, what,
		filled.Sub(began).Round(100*time.Millisecond), time.Since(filled).Round(100*time.Millisecond))
	return nil
}

// account installs ip-reaper's account with the shipped roles of a release, and writes its
// kubeconfig. The account has a certificate, because a token might expire meanwhile. API priority
// and fairness treats it as a service account. With a rate, its requests arrive as the
// administrator's.
func (g *stage) account(ctx context.Context, backends ...string) error {
	grant, err := reap.ShippedGrant(reap.ReleaseRights, backends...)
	if err != nil {
		return err
	}
	if _, err := reap.InstallAccount(ctx, g.cluster, grant); err != nil {
		return err
	}
	config, err := g.cluster.User("system:serviceaccount:"+reap.Home+":"+reap.Home,
		"system:serviceaccounts", "system:serviceaccounts:"+reap.Home)
	if err != nil {
		return err
	}
	if g.rate > 0 {
		if g.limited, err = proxy.Start(g.cluster.Config); err != nil {
			return err
		}
		limiter := rate.NewLimiter(rate.Limit(g.rate), g.rate)
		g.limited.Before(proxy.Any, func(context.Context, proxy.Request) proxy.Action {
			if limiter.Allow() {
				return proxy.Pass()
			}
			return proxy.TooManyRequests(time.Second)
		})
		config = g.limited.Config(config)
	}
	g.kubeconfig, err = g.cluster.KubeconfigFor(config)
	return err
}

// close ends the cluster.
func (g *stage) close() error {
	if g.limited != nil {
		g.limited.Stop()
	}
	var err error
	if g.store.client != nil {
		err = g.store.Close()
	}
	return errors.Join(err, g.cluster.Stop())
}

// install installs a policy of ip-reaper.
func (g *stage) install(ctx context.Context, policy string) error {
	return reap.Memory{Cluster: g.cluster, Namespace: reap.Home}.InstallPolicy(ctx, policy)
}

// sweep removes ip-reaper's ledger, journals and lock.
func (g *stage) sweep(ctx context.Context) error {
	maps := "/registry/configmaps/" + reap.Home + "/ip-reaper-"
	return g.store.clear(ctx, maps+"ledger", maps+"journal", "/registry/leases/"+reap.Home+"/")
}

// file returns a path in the cluster's folder.
func (g *stage) file(name string) string { return filepath.Join(g.cluster.Dir, name) }
