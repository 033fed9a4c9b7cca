package cli

import (
	"cmp"
	"context"
	"errors"
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
	flags.StringVar(&f.stateNamespace, "state-namespace", "", "keep the ledger, the journals and the lock in this `NAMESPACE`; by default, "+state.StateNamespace+", or in a pod its own")
}

// check implements target.
func (*clusterFlags) check() error { return nil }

// name implements target.
func (*clusterFlags) name(ioStreams) string { return "" }

// controllerName is who reports events.
const controllerName = "ip-reaper.github.io/ip-reaper"

// connect implements target. Outside a cluster, writing requires that --context is typed, and
// is not empty.
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
	opened, err := plugin.Open(ctx, plugin.Of(w.backends, plugin.Cluster), at.config, w.env, o.policy, o.concurrency)
	if err != nil {
		return connection{}, err
	}
	if err := kube.FirstAnswer(ctx, clients.raw, at.String(), min(o.timeout, w.firstAnswer)); err != nil {
		return connection{}, err
	}
	namespace := cmp.Or(f.stateNamespace, at.namespace)
	warnings, err := checkState(ctx, clients, namespace, o.writes, o.logger)
	if err != nil {
		return connection{}, err
	}
	var self ipam.PodRef
	by := ""
	if name := w.env("POD_NAME"); name != "" && at.context == "" {
		self = ipam.PodRef{Namespace: at.namespace, Name: name}
		by = "pod " + self.String()
	} else if at.user != "" {
		by = "user " + at.user
	}
	return connection{
		Options: reaper.Options{
			Address: at.config.Host, Kubeconfig: f.kubeconfig, Context: at.context, StateNamespace: namespace, By: by,
			Backends: opened, Cluster: state.NewCluster(clients.core, clients.apps, clients.raw),
			Ledgers: state.NewLedgers(clients.core, namespace), Lock: state.NewLock(clients.leases, namespace, time.Now, o.logger),
			Events: state.NewEventRecorder(clients.events, clients.core, self, controllerName),
			HasNamespace: func(ctx context.Context, name string) (bool, error) {
				return state.HasNamespace(ctx, clients.core, name)
			},
			Access: rights(w, at, clients, opened, namespace, o.policy, o.logger), ClockSkew: clock.Skew,
		},
		journals: state.NewJournals(clients.core, namespace, retention(o.policy)),
		warnings: warnings, close: func() {},
	}, nil
}
