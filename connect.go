package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/generated/clientset/versioned"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/cluster"
)

// requestTimeout ends a request that hangs, so that it can be tried again. A page
// of 500 large pods takes a busy API server a few seconds.
const requestTimeout = time.Minute

// A connection is everything that a run talks to.
type connection struct {
	address  string
	context  string // of the kubeconfig; empty inside a cluster
	backends []reaper.Backend
	cluster  reaper.Cluster
	ledgers  reaper.Ledgers
}

// connect prepares the clients; it contacts nobody. A run that may release
// wants to be told which cluster, unless it runs inside of it.
func connect(f runFlags, dryRun bool, env func(string) string) (connection, error) {
	config, contextName, namespace, err := loadConfig(f, env)
	if err != nil {
		return connection{}, err
	}
	if !dryRun && contextName != "" && f.context == "" {
		return connection{}, &usageError{
			errors.New("outside of a cluster, releasing needs an explicit --context"),
			"--context " + contextName,
		}
	}
	if f.namespace != "" {
		namespace = f.namespace
	}
	config.UserAgent = "ip-reaper/" + buildVersion()
	config.Timeout = requestTimeout
	config.QPS = -1 // the API server's priority and fairness does the throttling
	whereabouts, err := versioned.NewForConfig(config)
	if err != nil {
		return connection{}, fmt.Errorf("client: %w", err)
	}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := corev1.NewForConfig(protobuf)
	if err != nil {
		return connection{}, fmt.Errorf("client: %w", err)
	}
	apps, err := appsv1.NewForConfig(protobuf)
	if err != nil {
		return connection{}, fmt.Errorf("client: %w", err)
	}
	return connection{
		address:  config.Host,
		context:  contextName,
		backends: backends.All(backends.Clients{Whereabouts: whereabouts.WhereaboutsV1alpha1().RESTClient()}),
		cluster:  cluster.New(core, apps),
		ledgers:  cluster.NewLedgers(core, namespace),
	}, nil
}

// loadConfig finds the API server and the namespace: inside a cluster by the
// pod's service account unless a kubeconfig is named, elsewhere by kubeconfig,
// with the name of its context.
func loadConfig(f runFlags, env func(string) string) (config *rest.Config, contextName, namespace string, err error) {
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
		return nil, "", "", &usageError{fmt.Errorf("kubeconfig: %w", err), hint}
	}
	if config, err = loader.ClientConfig(); err != nil {
		return nil, "", "", &usageError{fmt.Errorf("kubeconfig: %w", err), hint}
	}
	if namespace, _, err = loader.Namespace(); err != nil {
		return nil, "", "", &usageError{fmt.Errorf("kubeconfig: %w", err), hint}
	}
	if f.context != "" {
		return config, f.context, namespace, nil
	}
	return config, raw.CurrentContext, namespace, nil
}
