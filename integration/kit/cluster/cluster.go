// Package cluster runs a real etcd and a real API server in a temporary folder, with Whereabouts'
// custom resources installed. There is no kubelet, no scheduler and no controller: the user of the
// package writes pods, their status and their annotations.
//
// Authorization is RBAC, so that roles can be tested.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/generated/clientset/versioned"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

const (
	// ContextName names the only context in every kubeconfig written here.
	ContextName = "demo"
	// PoolNamespace is the namespace of that context, and thus where the whereabouts plugin keeps
	// its pools.
	PoolNamespace = "kube-system"
)

// How long a component may take to start before that fails, and to end before
// it is killed.
const (
	startTimeout = 3 * time.Minute // with 150,000 pods in etcd, a busy machine needs more than one
	stopTimeout  = 20 * time.Second
)

// Options change how a cluster is started. The zero value is usable.
type Options struct {
	// CRDs are files or folders of additional custom resource definitions.
	CRDs []string
	// Flags are additional flags of the API server, without the leading dashes.
	Flags map[string]string
	// Prepare creates objects that Reset keeps. Nil creates none.
	Prepare func(context.Context, *Cluster) error
}

// A Cluster is a running control plane. Its clients act as an administrator, without a client-side
// rate limit, and survive a restart of the API server. All methods except Stop may be called
// concurrently.
type Cluster struct {
	// Dir is the folder of everything the cluster writes. Users may put their own files there; it
	// is removed with the cluster.
	Dir string
	// Kubeconfig is a file with the administrator's credentials.
	Kubeconfig string
	// EtcdURL is where etcd listens, in the clear.
	EtcdURL string
	// Version is what the API server says at /version, such as v1.36.3.
	Version string

	Config      *rest.Config
	Kube        kubernetes.Interface
	Whereabouts versioned.Interface
	Dynamic     dynamic.Interface

	plane    *envtest.ControlPlane
	guard    *assets.Guard
	log      *tail
	baseline map[string]bool // objects that existed before any test

	mu      sync.Mutex // guards serving and the process behind it
	serving bool
	files   int
}

// Start starts a cluster and returns when it serves its custom resources. The caller must Stop it.
// If ctx ends first, Start still waits for the component that it is starting, stops everything and
// returns ctx's error.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	crds, err := whereaboutsCRDs(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ip-reaper-cluster-")
	if err != nil {
		return nil, err
	}
	g, err := assets.StartGuard(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c := &Cluster{Dir: dir, guard: g, log: &tail{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if c.plane, err = controlPlane(c, o); err != nil {
		return nil, err
	}
	if err := c.startPlane(ctx); err != nil {
		return nil, err
	}
	if err := c.connect(); err != nil {
		return nil, err
	}
	if err := c.askVersion(); err != nil {
		return nil, err
	}
	install := envtest.CRDInstallOptions{
		Paths: append(crds, o.CRDs...), ErrorIfPathMissing: true, MaxTime: startTimeout,
	}
	if _, err := envtest.InstallCRDs(c.Config, install); err != nil {
		return nil, fmt.Errorf("install custom resources: %w", err)
	}
	if err := c.waitReady(ctx); err != nil {
		return nil, err
	}
	if o.Prepare != nil {
		if err := o.Prepare(ctx, c); err != nil {
			return nil, err
		}
	}
	c.baseline, err = c.objects(ctx)
	return c, err
}

// connect makes the administrator's clients and kubeconfig.
func (c *Cluster) connect() error {
	c.EtcdURL = c.plane.Etcd.URL.String()
	var err error
	if c.Config, err = c.User("admin", "system:masters"); err != nil {
		return err
	}
	if c.Kube, err = kubernetes.NewForConfig(c.Config); err != nil {
		return err
	}
	if c.Whereabouts, err = versioned.NewForConfig(c.Config); err != nil {
		return err
	}
	if c.Dynamic, err = dynamic.NewForConfig(c.Config); err != nil {
		return err
	}
	c.Kubeconfig, err = c.KubeconfigFor(c.Config)
	return err
}

// Stop ends API server and etcd, and removes the cluster's folder. Further calls do nothing.
func (c *Cluster) Stop() error {
	if c.guard == nil {
		return nil
	}
	var err error
	if c.plane != nil {
		if stopErr := c.plane.Stop(); stopErr != nil {
			err = fmt.Errorf("stop cluster: %w", stopErr)
		} else {
			err = c.guard.ForgetAll()
		}
	}
	err = errors.Join(err, c.guard.Release(), os.RemoveAll(c.Dir))
	c.guard = nil
	return err
}
