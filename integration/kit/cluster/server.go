package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// silence gives controller-runtime a logger: without one it complains, with a stack trace. Clusters
// may start in parallel, but calls of SetLogger must not overlap.
var silence = sync.OnceFunc(func() { log.SetLogger(logr.Discard()) })

// controlPlane configures the part of envtest that runs processes to run our programs in c.Dir. The
// other part, envtest.Environment, is not used: it leaves its own folder behind, and environment
// variables can point it to someone else's cluster, where tests would delete every pod they find.
func controlPlane(c *Cluster, o Options) (*envtest.ControlPlane, error) {
	silence()
	paths := map[string]string{}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		program, err := assets.Path(name)
		if err != nil {
			return nil, err
		}
		if paths[name], err = c.guard.Wrap(name, program); err != nil {
			return nil, err
		}
	}
	// Our own folders, so that certificates and data survive when a single component stops.
	dirs := map[string]string{}
	for _, name := range []string{"data", "certs"} {
		dirs[name] = filepath.Join(c.Dir, name)
		if err := os.Mkdir(dirs[name], 0o700); err != nil {
			return nil, err
		}
	}
	plane := &envtest.ControlPlane{KubectlPath: paths["kubectl"]}
	ports := map[string]string{}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		var err error
		if ports[name], err = assets.ReservePort(); err != nil {
			return nil, err
		}
	}
	plane.Etcd = &envtest.Etcd{
		URL:  &url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", ports["etcd"])},
		Path: paths["etcd"], DataDir: dirs["data"], Out: c.log, Err: c.log,
		StartTimeout: startTimeout, StopTimeout: stopTimeout,
	}
	plane.Etcd.Configure().Set("listen-peer-urls", "http://127.0.0.1:0") // it has no peer
	server := plane.GetAPIServer()
	server.Address, server.Port = "127.0.0.1", ports["kube-apiserver"]
	server.Path, server.CertDir = paths["kube-apiserver"], dirs["certs"]
	server.Out, server.Err = c.log, c.log
	server.StartTimeout, server.StopTimeout = startTimeout, stopTimeout
	// No controller here would create a namespace's service account.
	server.Configure().Set("disable-admission-plugins", "ServiceAccount")
	for flag, value := range o.Flags {
		server.Configure().Set(flag, value)
	}
	return plane, nil
}

// startPlane starts the processes. envtest takes no context, so a cancellation takes effect when
// both are up.
func (c *Cluster) startPlane(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.plane.Start(); err != nil {
		return fmt.Errorf("start cluster: %w\n%s", err, c.log.lines())
	}
	c.serving = true
	return ctx.Err()
}

// StopAPIServer stops only the API server. What it has answered is in etcd.
func (c *Cluster) StopAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.serving {
		return errors.New("stop API server: it is not running")
	}
	if err := c.plane.APIServer.Stop(); err != nil {
		return fmt.Errorf("stop API server: %w", err)
	}
	c.serving = false
	return c.guard.Forget("kube-apiserver")
}

// StartAPIServer starts the API server again, at the same address and with the
// same certificates, and returns when it serves its custom resources.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serving {
		return errors.New("start API server: it is running")
	}
	if err := c.plane.APIServer.Start(); err != nil {
		return fmt.Errorf("start API server: %w\n%s", err, c.log.lines())
	}
	c.serving = true
	return c.waitReady(ctx)
}

// waitReady waits until the API server says that it is ready and lists pools.
func (c *Cluster) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		err := c.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for API server: %w: %w", context.Cause(ctx), err)
		case <-poll.C:
		}
	}
}

func (c *Cluster) ready(ctx context.Context) error {
	var status int
	err := c.Kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status).Error()
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("/readyz answers %d", status)
	}
	_, err = c.Whereabouts.WhereaboutsV1alpha1().IPPools(PoolNamespace).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}
