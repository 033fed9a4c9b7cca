package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// requestTimeout ends a request that hangs, so that it can be tried again. A page
// of 500 large pods takes a busy API server a few seconds.
const requestTimeout = time.Minute

// A connection is everything that a run talks to.
type connection struct {
	address   string
	context   string // of the kubeconfig; empty inside a cluster
	backends  []reaper.Backend
	cluster   reaper.Cluster
	ledgers   reaper.Ledgers
	journals  *kube.Journals
	lock      reaper.Lock
	events    reaper.EventRecorder
	clockSkew func() (time.Duration, bool)
}

// connect prepares the clients and makes no request. Outside a cluster, writing
// requires an explicit --context.
func connect(ctx context.Context, w ioStreams, f clusterFlags, writes bool, p policy.Policy, logger *slog.Logger) (connection, error) {
	config, contextName, namespace, err := loadConfig(f, w.env)
	if err != nil {
		return connection{}, err
	}
	if writes && contextName != "" && f.context == "" {
		return connection{}, reaper.BadInput(errors.New("outside a cluster, writing requires an explicit --context"),
			"--context "+contextName)
	}
	config.UserAgent = "ip-reaper/" + buildVersion()
	config.Timeout = requestTimeout
	clock := kube.NewClock(time.Now)
	config.Wrap(clock.Wrap)
	config.QPS = -1 // the API server's priority and fairness does the throttling
	c := connection{address: config.Host, context: contextName, clockSkew: clock.Skew}
	if c.backends, err = plugin.Open(ctx, w.backends, config, w.env, p); err != nil {
		return connection{}, err
	}
	var self reaper.PodRef
	if name := w.env("POD_NAME"); name != "" && contextName == "" {
		self = reaper.PodRef{Namespace: namespace, Name: name}
	}
	namespace = cmp.Or(f.namespace, namespace)
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, coreErr := corev1.NewForConfig(protobuf)
	apps, appsErr := appsv1.NewForConfig(protobuf)
	leases, leasesErr := coordinationv1.NewForConfig(protobuf)
	events, eventsErr := eventsv1.NewForConfig(protobuf)
	raw, rawErr := kube.RawClient(config)
	if err := cmp.Or(coreErr, appsErr, leasesErr, eventsErr, rawErr); err != nil {
		return connection{}, fmt.Errorf("client: %w", err)
	}
	c.cluster = kube.NewCluster(core, apps, raw)
	c.ledgers = kube.NewLedgers(core, namespace)
	c.journals = kube.NewJournals(core, namespace, *p.Journal.Keep)
	c.lock = kube.NewLock(leases, namespace, time.Now, logger)
	c.events = kube.NewEventRecorder(events, core, self, controllerName)
	return c, nil
}

// controllerName is who reports events.
const controllerName = "ip-reaper.github.io/ip-reaper"

// loadConfig finds the API server and the namespace: inside a cluster by the
// pod's service account unless a kubeconfig is named, elsewhere by kubeconfig,
// with the name of its context.
func loadConfig(f clusterFlags, env func(string) string) (config *rest.Config, contextName, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	if f.kubeconfig == "" && f.context == "" && env(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if config, err = rest.InClusterConfig(); err == nil {
			namespace, _, err = loader.Namespace()
			return config, "", namespace, err
		}
	}
	hint := "name one with --kubeconfig and --context"
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, "", "", reaper.BadInput(fmt.Errorf("kubeconfig: %w", err), hint)
	}
	if config, err = loader.ClientConfig(); err != nil {
		return nil, "", "", reaper.BadInput(fmt.Errorf("kubeconfig: %w", err), hint)
	}
	if namespace, _, err = loader.Namespace(); err != nil {
		return nil, "", "", reaper.BadInput(fmt.Errorf("kubeconfig: %w", err), hint)
	}
	if f.context != "" {
		return config, f.context, namespace, nil
	}
	return config, raw.CurrentContext, namespace, nil
}
