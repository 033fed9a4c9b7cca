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
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// requestTimeout ends a request that hangs, so that it can be tried again. A page
// of 500 large pods takes a busy API server a few seconds.
const requestTimeout = time.Minute

// connect implements target. Outside a cluster, writing requires that --context is typed, and
// is not empty.
func (f *clusterFlags) connect(ctx context.Context, w ioStreams, of commandFlags, writes bool, p policy.Policy, logger *slog.Logger) (connection, error) {
	config, contextName, namespace, err := loadConfig(*f, w.env)
	if err != nil {
		return connection{}, err
	}
	named := f.context != "" && typed(f.flags.Lookup("context"))
	if writes && contextName != "" && !named {
		return connection{}, ipam.BadInput(errors.New("outside a cluster, writing requires an explicit --context"),
			"--context "+contextName)
	}
	clock := prepare(config, of)
	clients, err := clientsOf(config)
	if err != nil {
		return connection{}, err
	}
	c := connection{address: config.Host, context: contextName, clockSkew: clock.Skew, close: func() {}}
	if c.backends, err = plugin.Open(ctx, plugin.Of(w.backends, plugin.Cluster), config, w.env, p, cmp.Or(of.concurrency, defaultConcurrency)); err != nil {
		return connection{}, err
	}
	var self ipam.PodRef
	if name := w.env("POD_NAME"); name != "" && contextName == "" {
		self = ipam.PodRef{Namespace: namespace, Name: name}
		c.by = "pod " + self.String()
	} else if user := userOf(*f, contextName); user != "" {
		c.by = "user " + user
	}
	namespace = cmp.Or(f.stateNamespace, namespace)
	c.stateNamespace = namespace
	c.cluster = state.NewCluster(clients.core, clients.apps, clients.raw)
	c.ledgers = state.NewLedgers(clients.core, namespace)
	c.journals = state.NewJournals(clients.core, namespace, retention(p))
	c.lock = state.NewLock(clients.leases, namespace, time.Now, logger)
	c.events = state.NewEventRecorder(clients.events, clients.core, self, controllerName)
	c.access = rights(w, clients, c.backends, namespace, p, logger)
	c.firstAnswer = func(ctx context.Context) error { return firstAnswer(ctx, w, config.Host, clients, of.timeout, logger) }
	c.checkState = func(ctx context.Context, writes bool) ([]string, error) {
		return checkState(ctx, clients, namespace, writes, logger)
	}
	return c, nil
}

// retention returns which journals the policy keeps.
func retention(p policy.Policy) journal.Retention {
	return journal.Retention{Runs: *p.Journal.Keep, For: p.Journal.KeepFor.Duration}
}

// prepare sets what the requests of a config have in common. It returns the clock that they
// are compared with.
func prepare(config *rest.Config, of commandFlags) *kube.Clock {
	config.UserAgent = "ip-reaper/" + buildVersion()
	config.Timeout = requestTimeout
	clock := kube.NewClock(time.Now)
	config.Wrap(kube.NewInFlight(cmp.Or(of.concurrency, defaultConcurrency)).Wrap)
	config.Wrap(clock.Wrap)
	config.QPS = -1 // the API server's priority and fairness does the throttling
	return clock
}

// clients are the clients of an API server.
type clients struct {
	core   corev1.CoreV1Interface
	apps   appsv1.AppsV1Interface
	leases coordinationv1.CoordinationV1Interface
	events eventsv1.EventsV1Interface
	raw    rest.Interface // see kube.RawClient
}

// clientsOf returns the clients for a config.
func clientsOf(config *rest.Config) (clients, error) {
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, coreErr := corev1.NewForConfig(protobuf)
	apps, appsErr := appsv1.NewForConfig(protobuf)
	leases, leasesErr := coordinationv1.NewForConfig(protobuf)
	events, eventsErr := eventsv1.NewForConfig(protobuf)
	raw, rawErr := kube.RawClient(config)
	if err := cmp.Or(coreErr, appsErr, leasesErr, eventsErr, rawErr); err != nil {
		return clients{}, fmt.Errorf("client: %w", err)
	}
	return clients{core, apps, leases, events, raw}, nil
}

// maxFirstAnswer is how long the program waits for the first answer of an API server.
const maxFirstAnswer = 30 * time.Second

// firstAnswer waits for the first answer of the API server. It tells once that it waits.
func firstAnswer(ctx context.Context, w ioStreams, host string, c clients, timeout time.Duration, logger *slog.Logger) error {
	limit := min(timeout, cmp.Or(w.firstAnswer, maxFirstAnswer))
	answered := make(chan error, 1)
	go func() { answered <- kube.FirstAnswer(ctx, c.raw, host, limit) }()
	select {
	case err := <-answered:
		return err
	case <-time.After(limit / 3):
	}
	if w.terminal {
		w.progress("waiting for the API server " + host)
	} else {
		logger.Warn("waiting for the API server", "server", host)
	}
	return <-answered
}

// progress prints a line of progress to the terminal.
func (w ioStreams) progress(line string) { fmt.Fprintln(w.stderr, printable.Line(line)) }

// controllerName is who reports events.
const controllerName = "ip-reaper.github.io/ip-reaper"

// userOf returns the name that the kubeconfig gives to the user of a context; nothing if it
// has none.
func userOf(f clusterFlags, contextName string) string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := rules.Load()
	if err != nil || config.Contexts[contextName] == nil {
		return ""
	}
	return config.Contexts[contextName].AuthInfo
}

// loadConfig finds the API server and the namespace of the state: inside a cluster by the
// pod's service account and namespace unless a kubeconfig is named, elsewhere by kubeconfig,
// with the name of its context, and state.StateNamespace. The namespace of a context is that
// of its user's pods, and has no ledger.
func loadConfig(f clusterFlags, env func(string) string) (config *rest.Config, contextName, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	if f.kubeconfig == "" && f.context == "" && env(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if config, err = rest.InClusterConfig(); err == nil {
			config.DisableCompression = true // the network is faster than gzip
			namespace, _, err = loader.Namespace()
			return config, "", namespace, err
		}
	}
	hint := "name one with --kubeconfig and --context"
	described := func(err error) error {
		if clientcmd.IsEmptyConfig(err) {
			err = errors.New("there is none, and the program does not run in a pod")
		}
		return ipam.BadInput(fmt.Errorf("kubeconfig: %w", err), hint)
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, "", "", described(err)
	}
	if config, err = loader.ClientConfig(); err != nil {
		return nil, "", "", described(err)
	}
	return config, cmp.Or(f.context, raw.CurrentContext), state.StateNamespace, nil
}
