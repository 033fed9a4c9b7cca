package cluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// shared is the cluster of a test binary that called Run.
var shared struct {
	mu      sync.Mutex
	enabled bool
	options func(context.Context) (Options, error)
	cluster *Cluster
	err     error
}

// Run runs the tests of a package with one cluster for all of them, started by the first StartT.
// Only then is options called. Run returns the code to exit with.
func Run(m *testing.M, options func(context.Context) (Options, error)) int {
	shared.enabled, shared.options = true, options
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// StartT returns the cluster of the test binary if its TestMain calls Run, or else a new one that
// ends with the test. It fails the test if none can be started. The log of the test that starts it
// has the API server's version.
func StartT(t testing.TB) *Cluster {
	t.Helper()
	if !shared.enabled {
		c, err := Start(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("API server %s", c.Version)
		t.Cleanup(func() {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		})
		return c
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster == nil && shared.err == nil {
		if shared.cluster, shared.err = startShared(context.WithoutCancel(t.Context())); shared.err == nil {
			t.Logf("API server %s", shared.cluster.Version)
		}
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// startShared starts the cluster that outlives the test.
func startShared(ctx context.Context) (*Cluster, error) {
	options, err := shared.options(ctx)
	if err != nil {
		return nil, err
	}
	return Start(ctx, options)
}

// Namespace returns the name of a new namespace for the test. When the test
// ends, its pods are deleted; the namespace stays, empty.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test-%d-%d", os.Getpid(), podNumber.Add(1))
	if err := c.CreateNamespace(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := c.DeletePods(ctx, name); err != nil {
			t.Error(err)
		}
	})
	return name
}

// ResetT resets the cluster now. What the test leaves behind stays until the next reset.
func (c *Cluster) ResetT(t testing.TB) {
	t.Helper()
	if err := c.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
}
