package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // OIDC, and what became of other providers
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// clusterFlags say which cluster a command contacts. It implements target.
type clusterFlags struct {
	flags *pflag.FlagSet

	kubeconfig     string
	client         clientcmd.ConfigOverrides
	requestTimeout string
	stateNamespace string
}

// clientFlags are the flags of kubectl that say who asks which API server, besides the context.
var clientFlags = []string{"server", "cluster", "user", "as", "as-group", "as-uid"}

// scope implements target.
func (*clusterFlags) scope() plugin.Scope { return plugin.Cluster }

// add implements target.
func (f *clusterFlags) add(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "use this kubeconfig `FILE`; by default, the pod's service account, then KUBECONFIG, then ~/.kube/config")
	flags.StringVar(&f.client.CurrentContext, "context", "", "use this `CONTEXT` of the kubeconfig; it must be typed to write from outside the cluster")
	flags.StringVarP(&f.client.ClusterInfo.Server, "server", "s", "", "ask the API server at this `URL`")
	flags.StringVar(&f.client.Context.Cluster, "cluster", "", "use this `CLUSTER` of the kubeconfig")
	flags.StringVar(&f.client.Context.AuthInfo, "user", "", "use this `USER` of the kubeconfig")
	flags.StringVar(&f.client.AuthInfo.Impersonate, "as", "", "act as this `USER`")
	flags.StringArrayVar(&f.client.AuthInfo.ImpersonateGroups, "as-group", nil, "with --as, act as a member of this `GROUP`; repeatable")
	flags.StringVar(&f.client.AuthInfo.ImpersonateUID, "as-uid", "", "with --as, act as the user with this `UID`")
	flags.StringVar(&f.requestTimeout, "request-timeout", requestTimeout.String(), "give up on each attempt of a request after this `DURATION`; 0 leaves it to --timeout")
	flags.StringVar(&f.stateNamespace, "state-namespace", "", "the ledger, the journals, the lock and the installed policy are in this `NAMESPACE`; by default, "+report.StateNamespace+", or in a pod its own")
}

// check implements target.
func (f *clusterFlags) check() error {
	if f.stateNamespace == "" && f.flags.Changed("state-namespace") { // such as --state-namespace "$UNSET"
		return ipam.BadInput(errors.New("--state-namespace: no namespace is named"), "name one, or leave the flag out")
	}
	if timeout, err := clientcmd.ParseTimeout(f.requestTimeout); err != nil || timeout < 0 {
		return ipam.BadInput(fmt.Errorf("--request-timeout: %q is not a duration", f.requestTimeout), "give one such as 30s, or 0")
	}
	return nil
}

// workstation implements target.
func (f *clusterFlags) workstation(w ioStreams) bool {
	at, err := locate(f.kubeconfig, f.client, w.env)
	return err == nil && at.context != ""
}

// name implements target.
func (*clusterFlags) name(ioStreams) string { return "" }

// A contact is an API server that a command asks, and what is found there before anything is listed.
type contact struct {
	apiServer
	clients
	clock      *kube.Clock
	stateIn    string            // the namespace of the state
	answered   func() error      // waits for the first answer
	foundState func() foundState // looks once
}

// contact returns the API server that the flags name. Outside a cluster, writing requires a --context that
// is typed and not empty.
func (f *clusterFlags) contact(ctx context.Context, w ioStreams, o connectOptions) (contact, error) {
	at, err := locate(f.kubeconfig, f.client, w.env)
	if err != nil {
		return contact{}, err
	}
	named := f.client.CurrentContext != "" && typed(f.flags.Lookup("context"))
	if o.writes && at.context != "" && !named {
		return contact{}, ipam.BadInput(errors.New("outside a cluster, writing requires an explicit --context"),
			"--context "+at.context)
	}
	perRequest, _ := clientcmd.ParseTimeout(f.requestTimeout) // it was checked
	perRequest = cmp.Or(perRequest, o.timeout)
	clients, clock, err := at.clients(o.concurrency, perRequest)
	if err != nil {
		return contact{}, err
	}
	namespace := cmp.Or(f.stateNamespace, at.namespace)
	return contact{
		apiServer: at,
		clients:   clients,
		clock:     clock,
		stateIn:   namespace,
		answered: sync.OnceValue(func() error {
			return kube.FirstAnswer(ctx, clients.raw, at.String(), min(o.timeout, w.firstAnswer, perRequest))
		}),
		foundState: sync.OnceValue(func() foundState {
			return checkState(ctx, clients, namespace, o.writes || f.flags.Changed("state-namespace"), o.logger)
		}),
	}, nil
}

// choose returns the policy that counts. The installed one does not matter to a command that judges
// nothing, or goes by a file in a pod, or is a dry run by a file. It is read, and the state looked for,
// beside the first request: none of them needs another's answer.
func (c contact) choose(ctx context.Context, w ioStreams, o connectOptions) (choice, error) {
	if o.stateOnly || o.policyFile != "" && (c.context == "" || !o.writes) {
		return choice{policy: o.policy}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var chosen choice
	var err error
	var look sync.WaitGroup
	look.Go(func() { c.foundState() })
	look.Go(func() { chosen, err = choosePolicy(ctx, w, c.core, c.stateIn, o) })
	unanswered := c.answered()
	if unanswered != nil {
		cancel()
	}
	look.Wait()
	if unanswered != nil {
		return choice{}, unanswered
	}
	if err != nil {
		found := c.foundState()
		return choice{}, cmp.Or(found.err, elsewhereFirst(err, found.caveats))
	}
	return chosen, nil
}

// startedBy says who runs the program: the pod, or the user of the kubeconfig.
func (c contact) startedBy(w ioStreams) string {
	name := w.env("POD_NAME")
	switch {
	case name != "" && c.context == "":
		return "pod " + ipam.PodRef{Namespace: c.namespace, Name: name}.String()
	case c.user != "":
		return "user " + c.user
	default:
		return ""
	}
}

// connect implements target.
func (f *clusterFlags) connect(ctx context.Context, w ioStreams, o connectOptions) (connection, error) {
	c, err := f.contact(ctx, w, o)
	if err != nil {
		return connection{}, err
	}
	chosen, err := c.choose(ctx, w, o)
	if err != nil {
		return connection{}, err
	}
	env := plugin.Env{Config: c.config, Client: c.raw, Getenv: w.env, InPod: c.context == "", Concurrency: o.concurrency}
	opened, protectors, err := plugin.Open(ctx, plugin.Of(w.backends, plugin.Cluster), env, chosen.policy)
	if err != nil {
		return connection{}, err
	}
	if err := c.answered(); err != nil {
		return connection{}, err
	}
	found := c.foundState()
	elsewhere := chosen.mayBeElsewhere(found.caveats, found.unread)
	if found.err != nil || o.writes && elsewhere != nil {
		return connection{}, cmp.Or(found.err, elsewhere)
	}
	caveats := slices.Clone(found.caveats)
	if chosen.caveat != "" && !found.none { // no policy is in a namespace that does not exist
		caveats = append(caveats, chosen.caveat)
	}
	for _, caveat := range caveats {
		if !o.shown(w) {
			o.logger.Warn("warning", "text", caveat)
		}
	}
	var installed func(context.Context) (policy.Policy, error)
	if c.context != "" && o.policyFile != "" && !o.writes {
		installed = func(ctx context.Context) (policy.Policy, error) {
			return readInstalled(ctx, w, c.core, c.stateIn)
		}
	}
	var same func(context.Context) error
	if c.context != "" || chosen.installed != "" {
		same = func(ctx context.Context) error { return chosen.unchanged(ctx, c.core, c.stateIn) }
	}
	return connection{
		installed: installed,
		policy:    dump.Policy{Installed: chosen.installed, Text: string(chosen.text)},
		Options: reaper.Options{
			Origin: report.Origin{
				Cluster:        c.config.Host,
				Kubeconfig:     f.kubeconfig,
				Context:        c.context,
				KnownAs:        w.env("CLUSTER_CONTEXT"),
				ClientFlags:    given(f.flags, append(slices.Clone(clientFlags), "request-timeout")...),
				By:             c.startedBy(w),
				StateNamespace: c.stateIn,
				NoState:        found.none,
				Barred:         !chosen.missing && chosen.caveat != "" || elsewhere != nil,
			},
			Policy:          chosen.policy,
			PolicyInstalled: chosen.installed,
			Caveats:         caveats,
			Backends:        opened,
			Protectors:      protectors,
			Cluster:         state.NewCluster(c.core, c.apps, c.raw),
			Ledgers:         state.NewLedgers(c.core, c.stateIn),
			Lock:            state.NewLock(c.leases, c.stateIn, time.Now, o.logger),
			ClusterUID:      clusterUID(c.clients, o.logger),
			SamePolicy:      same,
			HasNamespace: func(ctx context.Context, name string) census.Presence {
				return state.HasNamespace(ctx, c.core, name)
			},
			Access:    rights(w, c.apiServer, c.clients, opened, c.stateIn, chosen.policy, same, o.logger),
			ClockSkew: c.clock.Skew,
		},
		journals: state.NewJournals(c.core, c.stateIn, retention(chosen.policy)),
		client:   c.raw,
		core:     c.core,
		warnings: found.caveats,
		close:    func() {},
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

// requestTimeout ends a request that hangs, so that it can be tried again, unless a flag says
// otherwise. A page of 500 large pods takes a busy API server a few seconds. The wait for a free slot
// does not count, as it would with the timeout of client-go.
const requestTimeout = time.Minute

// An apiServer says how to reach an API server, and where ip-reaper has its state there.
type apiServer struct {
	config    *rest.Config
	context   string // of the kubeconfig; empty inside a cluster
	user      string // who acts, as the kubeconfig names it, and as whom; empty inside a cluster
	namespace string // of the state, unless a flag names one
}

// locate finds the API server and the namespace of the state: inside a cluster by the
// pod's service account and namespace unless a kubeconfig is named, elsewhere by kubeconfig,
// with the name of its context, and report.StateNamespace. The namespace of a context is for
// its user's pods, and has no ledger.
func locate(kubeconfig string, overrides clientcmd.ConfigOverrides, env func(string) string) (apiServer, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &overrides)
	if kubeconfig == "" && reflect.ValueOf(overrides).IsZero() && env(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if config, err := rest.InClusterConfig(); err == nil {
			config.DisableCompression = true // the network is faster than gzip
			namespace, _, err := loader.Namespace()
			return apiServer{config: config, namespace: namespace}, err
		}
	}
	raw, rawErr := loader.RawConfig()
	config, err := loader.ClientConfig()
	if err = cmp.Or(rawErr, err); err != nil {
		if clientcmd.IsEmptyConfig(err) {
			err = errors.New("none found, and this is no pod")
			if path := env(clientcmd.RecommendedConfigPathEnvVar); path != "" {
				err = fmt.Errorf("%s=%s does not exist, or is empty", clientcmd.RecommendedConfigPathEnvVar, path)
			}
		}
		hint := cmp.Or(meant(overrides.CurrentContext, raw.Contexts), meant(overrides.Context.Cluster, raw.Clusters), meant(overrides.Context.AuthInfo, raw.AuthInfos))
		return apiServer{}, ipam.BadInput(fmt.Errorf("kubeconfig: %w", err), cmp.Or(hint, "name one with --kubeconfig and --context"))
	}
	at := apiServer{config: config, context: cmp.Or(overrides.CurrentContext, raw.CurrentContext), namespace: report.StateNamespace}
	if at.context == "" { // what follows would take this for a pod
		return apiServer{}, ipam.BadInput(errors.New("kubeconfig: it has no current context"), "name one with --context")
	}
	if named := raw.Contexts[at.context]; named != nil {
		at.user = cmp.Or(overrides.Context.AuthInfo, named.AuthInfo)
	}
	if as := config.Impersonate; as.UserName != "" { // by a flag, or by the kubeconfig
		at.user = strings.TrimSpace(at.user + " as " + as.UserName)
		if len(as.Groups) > 0 {
			at.user += " in " + printable.Some(as.Groups)
		}
	}
	return at, nil
}

// meant asks for the names that a name of a kubeconfig may stand for, unless that exists.
func meant[V any](name string, known map[string]V) string {
	if _, ok := known[name]; ok || name == "" {
		return ""
	}
	return printable.Meant(name, slices.Collect(maps.Keys(known)))
}

// String names the API server and, outside a cluster, the context.
func (at apiServer) String() string {
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

// clients returns the clients for the API server, and the clock that their answers are compared
// with. It sets in the config what the requests of all clients have in common.
func (at apiServer) clients(concurrency int, timeout time.Duration) (clients, *kube.Clock, error) {
	at.config.UserAgent = "ip-reaper/" + buildVersion()
	clock := kube.NewClock(time.Now)
	at.config.Wrap(kube.NewInFlight(concurrency, timeout).Wrap)
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

// stateTimeout limits the look at the state namespace: it is advice, and the run reports a
// server that does not answer.
const stateTimeout = 5 * time.Second

// A foundState says whether the state namespace exists, and whether others may be meant.
type foundState struct {
	caveats []string // for the report: there is no such namespace, or ledgers and locks exist elsewhere
	none    bool     // there is no such namespace
	unread  error    // why it is not known whether they exist elsewhere
	err     error    // there is no such namespace, and the command must have it
}

// checkState looks at the state namespace. A command must have it if it writes, or was given the name.
func checkState(ctx context.Context, c clients, namespace string, must bool, logger *slog.Logger) foundState {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	var missing error
	var look sync.WaitGroup
	look.Go(func() { missing = state.CheckNamespace(ctx, c.core, namespace) })
	others, unread := state.OtherStates(ctx, c.raw, namespace)
	look.Wait()
	if unread != nil {
		logger.Debug("cannot tell whether other namespaces have a state", "err", unread)
	}
	var input *ipam.InputError
	hint := ""
	if errors.As(missing, &input) {
		hint = input.Hint
		if len(others) > 0 {
			hint = "ip-reaper has a ledger or a lock in namespace " + printable.Some(others) + ": name it with --state-namespace"
		}
	}
	found := foundState{none: input != nil, unread: unread}
	switch {
	case input == nil && len(others) > 0:
		found.caveats = []string{fmt.Sprintf("ip-reaper has a ledger or a lock in namespace %s, and this command uses %s: "+
			"check --state-namespace first; only if it is right, delete the ledger and the lock elsewhere", printable.Some(others), namespace)}
	case input == nil:
	case must:
		found.err = ipam.BadInput(input.Err, hint)
	case len(others) > 0:
		found.caveats = []string{input.Error() + ": " + hint}
	default:
		found.caveats = []string{input.Error() + ", so nothing can be released: see docs/install.md"}
	}
	return found
}
