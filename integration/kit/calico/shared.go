package calico

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// shared is the etcd of a test binary that called Run.
var shared struct {
	mu   sync.Mutex
	etcd *Etcd
	err  error
}

// Run runs the tests of a package with one cluster and one plain etcd for all of them. They start
// when a test asks for them; only then is options called. Run returns the code to exit with.
func Run(m *testing.M, options func(context.Context) (cluster.Options, error)) int {
	code := cluster.Run(m, options)
	if shared.etcd != nil {
		if err := shared.etcd.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// EachT runs the test in either datastore.
func EachT(t *testing.T, test func(*testing.T, *Datastore)) {
	t.Helper()
	t.Run("kubernetes", func(t *testing.T) { test(t, KubernetesT(t)) })
	t.Run("etcd", func(t *testing.T) { test(t, EtcdT(t)) })
}

// KubernetesT resets the test binary's cluster and returns the datastore in it. It fails the test
// if there is none.
func KubernetesT(t testing.TB) *Datastore {
	t.Helper()
	c := cluster.StartT(t)
	c.ResetT(t)
	d, err := OnKubernetes(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// EtcdT resets the test binary's etcd and cluster, and returns the datastore in etcd for the pods
// of the cluster. It fails the test if there is none.
func EtcdT(t testing.TB) *Datastore {
	t.Helper()
	shared.mu.Lock()
	if shared.etcd == nil && shared.err == nil {
		// The etcd outlives the test.
		shared.etcd, shared.err = StartEtcd(context.WithoutCancel(t.Context()), EtcdOptions{})
	}
	etcd, err := shared.etcd, shared.err
	shared.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := (etcdStore{etcd.Client}).clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	return OnEtcdT(t, etcd)
}

// OnEtcdT resets the test binary's cluster and returns the datastore in an etcd for its pods.
func OnEtcdT(t testing.TB, e *Etcd) *Datastore {
	t.Helper()
	c := cluster.StartT(t)
	c.ResetT(t)
	d, err := OnEtcd(t.Context(), c, e)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// StartEtcdT starts an etcd that ends with the test.
func StartEtcdT(t testing.TB, o EtcdOptions) *Etcd {
	t.Helper()
	e, err := StartEtcd(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	return e
}
