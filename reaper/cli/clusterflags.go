package cli

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/report"
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
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `FILE`; by default the pod's service account, then KUBECONFIG, then ~/.kube/config")
	flags.StringVar(&f.context, "context", "", "kubeconfig context; outside a cluster, writing requires that it is typed")
	flags.StringVar(&f.stateNamespace, "state-namespace", "", "namespace of ledger, journals and lock; by default "+state.StateNamespace+", or inside a cluster the namespace of the pod")
}

// check implements target.
func (*clusterFlags) check() error { return nil }

// name implements target.
func (*clusterFlags) name(ioStreams) string { return "" }

// command implements target. A run that writes requires the context.
func (f *clusterFlags) command(run report.RunInfo) []string {
	return slices.Concat([]string{"run"},
		flagWords("--kubeconfig", f.kubeconfig), flagWords("--context", run.Context), flagWords("--state-namespace", f.stateNamespace))
}

// flagWords returns a flag with its value; nothing without a value.
func flagWords(flag, value string) []string {
	if value == "" {
		return nil
	}
	return []string{flag, value}
}
