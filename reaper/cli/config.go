package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// requestTimeout ends a request that hangs, so that it can be tried again. A page
// of 500 large pods takes a busy API server a few seconds. The wait for a free slot does not count.
const requestTimeout = time.Minute

// A place is where an API server is.
type place struct {
	config    *rest.Config
	context   string // of the kubeconfig; empty inside a cluster
	user      string // the name that the kubeconfig gives to the user of the context
	namespace string // of the state, unless a flag names one
}

// locate finds the API server and the namespace of the state: inside a cluster by the
// pod's service account and namespace unless a kubeconfig is named, elsewhere by kubeconfig,
// with the name of its context, and state.StateNamespace. The namespace of a context is for
// its user's pods, and has no ledger.
func locate(kubeconfig, context string, env func(string) string) (place, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	if kubeconfig == "" && context == "" && env(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if config, err := rest.InClusterConfig(); err == nil {
			config.DisableCompression = true // the network is faster than gzip
			namespace, _, err := loader.Namespace()
			return place{config: config, namespace: namespace}, err
		}
	}
	raw, rawErr := loader.RawConfig()
	config, err := loader.ClientConfig()
	if err = cmp.Or(rawErr, err); err != nil {
		if clientcmd.IsEmptyConfig(err) {
			err = errors.New("none found, and this is no pod")
		}
		hint := printable.Meant(context, slices.Collect(maps.Keys(raw.Contexts)))
		return place{}, ipam.BadInput(fmt.Errorf("kubeconfig: %w", err), cmp.Or(hint, "name one with --kubeconfig and --context"))
	}
	at := place{config: config, context: cmp.Or(context, raw.CurrentContext), namespace: state.StateNamespace}
	if at.context == "" { // what follows would take this for a pod
		return place{}, ipam.BadInput(errors.New("kubeconfig: it has no current context"), "name one with --context")
	}
	if named := raw.Contexts[at.context]; named != nil {
		at.user = named.AuthInfo
	}
	return at, nil
}

// String names the API server and, outside a cluster, the context.
func (at place) String() string {
	if at.context == "" {
		return at.config.Host
	}
	return at.config.Host + " (context " + at.context + ")"
}

// clients are the clients of an API server.
type clients struct {
	core   corev1.CoreV1Interface
	apps   appsv1.AppsV1Interface
	leases coordinationv1.CoordinationV1Interface
	raw    rest.Interface // see kube.RawClient
}

// clients returns the clients for the place, and the clock that their answers are compared
// with. It sets in the config what the requests of all clients have in common.
func (at place) clients(concurrency int) (clients, *kube.Clock, error) {
	at.config.UserAgent = "ip-reaper/" + buildVersion()
	clock := kube.NewClock(time.Now)
	at.config.Wrap(kube.NewInFlight(concurrency, requestTimeout).Wrap)
	at.config.Wrap(clock.Wrap)
	at.config.QPS = -1 // the API server's priority and fairness does the throttling

	protobuf := rest.CopyConfig(at.config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, coreErr := corev1.NewForConfig(protobuf)
	apps, appsErr := appsv1.NewForConfig(protobuf)
	leases, leasesErr := coordinationv1.NewForConfig(protobuf)
	raw, rawErr := kube.RawClient(at.config)
	if err := cmp.Or(coreErr, appsErr, leasesErr, rawErr); err != nil {
		return clients{}, nil, fmt.Errorf("client: %w", err)
	}
	return clients{core, apps, leases, raw}, clock, nil
}
