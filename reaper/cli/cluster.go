package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

// clusterFlags say which cluster a command contacts. It implements target.
type clusterFlags struct {
	flags *pflag.FlagSet

	kubeconfig     string
	context        string
	stateNamespace string
}

// scope implements target.
func (*clusterFlags) scope() plugin.Scope { return plugin.Cluster }

// add implements target.
func (f *clusterFlags) add(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "use this kubeconfig `FILE`; by default, the pod's service account, then KUBECONFIG, then ~/.kube/config")
	flags.StringVar(&f.context, "context", "", "use this `CONTEXT` of the kubeconfig; it must be typed to write from outside the cluster")
	flags.StringVar(&f.stateNamespace, "state-namespace", "", "the ledger, the journals, the lock and the installed policy are in this `NAMESPACE`; by default, "+state.StateNamespace+", or in a pod its own")
}

// check implements target.
func (f *clusterFlags) check() error {
	if f.stateNamespace == "" && f.flags.Changed("state-namespace") { // such as --state-namespace "$UNSET"
		return ipam.BadInput(errors.New("--state-namespace: no namespace is named"), "name one, or leave the flag out")
	}
	return nil
}

// workstation implements target.
func (f *clusterFlags) workstation(w ioStreams) bool {
	at, err := locate(f.kubeconfig, f.context, w.env)
	return err == nil && at.context != ""
}

// name implements target.
func (*clusterFlags) name(ioStreams) string { return "" }

// connect implements target. Outside a cluster, writing requires a --context that is typed and
// not empty.
func (f *clusterFlags) connect(ctx context.Context, w ioStreams, o connectOptions) (connection, error) {
	at, err := locate(f.kubeconfig, f.context, w.env)
	if err != nil {
		return connection{}, err
	}
	named := f.context != "" && typed(f.flags.Lookup("context"))
	if o.writes && at.context != "" && !named {
		return connection{}, ipam.BadInput(errors.New("outside a cluster, writing requires an explicit --context"),
			"--context "+at.context)
	}
	clients, clock, err := at.clients(o.concurrency)
	if err != nil {
		return connection{}, err
	}
	answered := sync.OnceValue(func() error {
		return kube.FirstAnswer(ctx, clients.raw, at.String(), min(o.timeout, w.firstAnswer))
	})
	namespace := cmp.Or(f.stateNamespace, at.namespace)
	var warnings []string
	var unread, stateErr error
	checked := sync.OnceFunc(func() {
		warnings, unread, stateErr = checkState(ctx, clients, namespace, o.writes || f.flags.Changed("state-namespace"), o.logger)
	})
	chosen := choice{policy: o.policy}
	if at.context != "" && o.choosesPolicy() { // in a pod, the policy is a file
		if err := answered(); err != nil {
			return connection{}, err
		}
		var look sync.WaitGroup
		defer look.Wait()
		look.Go(checked)
		if chosen, err = choosePolicy(ctx, w, clients.core, namespace, o); err != nil {
			return connection{}, err
		}
	}
	opened, err := plugin.Open(ctx, plugin.Of(w.backends, plugin.Cluster),
		plugin.Env{Config: at.config, Client: clients.raw, Getenv: w.env, InPod: at.context == "", Concurrency: o.concurrency}, chosen.policy)
	if err != nil {
		return connection{}, err
	}
	if err := answered(); err != nil {
		return connection{}, err
	}
	checked()
	if err = cmp.Or(stateErr, chosen.elsewhere(warnings, unread)); err != nil {
		return connection{}, err
	}
	caveats := slices.Clone(warnings)
	if chosen.caveat != "" {
		caveats = append(caveats, chosen.caveat)
	}
	for _, caveat := range caveats {
		o.logger.Warn("warning", "text", caveat)
	}
	by := ""
	if name := w.env("POD_NAME"); name != "" && at.context == "" {
		by = "pod " + ipam.PodRef{Namespace: at.namespace, Name: name}.String()
	} else if at.user != "" {
		by = "user " + at.user
	}
	return connection{
		Options: reaper.Options{
			Address: at.config.Host, Kubeconfig: f.kubeconfig, Context: at.context, StateNamespace: namespace, By: by,
			Policy: chosen.policy, PolicyInstalled: chosen.installed, Caveats: caveats,
			Backends: opened, Cluster: state.NewCluster(clients.core, clients.apps, clients.raw),
			Ledgers: state.NewLedgers(clients.core, namespace), Lock: state.NewLock(clients.leases, namespace, time.Now, o.logger),
			ClusterUID: clusterUID(clients, o.logger),
			HasNamespace: func(ctx context.Context, name string) (bool, error) {
				return state.HasNamespace(ctx, clients.core, name)
			},
			Access: rights(w, at, clients, opened, namespace, chosen, o.logger), ClockSkew: clock.Skew,
		},
		journals: state.NewJournals(clients.core, namespace, retention(chosen.policy)),
		warnings: warnings, close: func() {},
	}, nil
}

// clusterUID returns a function that identifies the cluster; it returns nothing if the account may
// not.
func clusterUID(c clients, logger *slog.Logger) func(context.Context) string {
	return func(ctx context.Context) string {
		uid, err := state.ClusterUID(ctx, c.core)
		if err != nil {
			logger.Debug("cannot tell which cluster this is", "err", err)
		}
		return uid
	}
}

// A target is where a command works: a cluster, or the node on which the program runs. Its
// flags say which one.
type target interface {
	// scope says which backends the command opens.
	scope() plugin.Scope

	// add adds the flags to a command.
	add(flags *pflag.FlagSet)

	// check returns the mistakes in the flags that can be found without the target.
	check() error

	// workstation reports whether a run is from outside a cluster, where a policy alone does not
	// make it release.
	workstation(w ioStreams) bool

	// name returns the name of the node; empty for a cluster, and if it is not known.
	name(w ioStreams) string

	// connect connects to the target, waits for its first answer, chooses the policy, and looks
	// at the place of the state. If it fails, nothing stays open.
	connect(ctx context.Context, w ioStreams, o connectOptions) (connection, error)
}

// connectOptions say what a command needs from its target.
type connectOptions struct {
	commandFlags
	writes bool          // it writes anything
	policy policy.Policy // of the file, or the default
	logger *slog.Logger
}

// A connection is everything that a run talks to.
type connection struct {
	reaper.Options // those that a target knows, and those that all of its commands have in common

	journals storedJournals
	warnings []string // those of the caveats that are about the place of the state
	close    func()   // closes what the connection has opened
}

// storedJournals are the journals of earlier runs, and that of this one.
type storedJournals interface {
	journal.Store

	// Read returns the journal of a run. The error wraps journal.ErrNone or
	// journal.ErrDamaged; with the latter, the journal has what could be read.
	Read(ctx context.Context, runID string) (journal.Journal, error)

	// List returns the runs that have a journal, the latest first. The warnings say what
	// could not be read.
	List(ctx context.Context) (runs []journal.PastRun, warnings []string, err error)
}

// unread returns the error of reading a journal. If there is no journal, the hint says which
// other namespaces may have it.
func (c connection) unread(err error) error {
	if !errors.Is(err, journal.ErrNone) {
		return err
	}
	return ipam.BadInput(err, strings.Join(append(c.warnings, print.CommandOn("history", c.called())+" lists the runs that have one"), "; "))
}

// called returns how the program was called, for the commands that a report prints.
func (c connection) called() report.RunInfo {
	by := report.RunInfo{
		Program: c.Program, Kubeconfig: c.Kubeconfig, Context: c.Context, StateNamespace: c.StateNamespace,
		Node: c.Node, StateDir: c.StateDir, Caveats: c.Caveats,
	}
	by.Policy.File, by.Policy.Installed = c.PolicyFile, c.PolicyInstalled
	return by
}

// retention returns which journals the policy keeps.
func retention(p policy.Policy) journal.Retention {
	return journal.Retention{Runs: *p.Journal.Keep, For: p.Journal.KeepFor.Duration}
}

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
