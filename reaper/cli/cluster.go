package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
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
		plugin.Env{Config: at.config, Getenv: w.env, InPod: at.context == "", Concurrency: o.concurrency}, chosen.policy)
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
