package cli

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// completionTimeout is how long a shell waits for names from the API server.
const completionTimeout = 2 * time.Second

// fromCluster completes to names that list reads from the cluster of the command line. It
// is silent about errors. It leaves out names that are not printable.
func fromCluster(w ioStreams, list func(context.Context, connection) ([]string, error)) cobra.CompletionFunc {
	w.terminal = false // nothing is told
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if err := fromEnv(cmd.Flags(), w.env); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		value := func(flag string) string {
			if f := cmd.Flag(flag); f != nil {
				return f.Value.String()
			}
			return ""
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		p, err := loadPolicy(w, value("policy"))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		at := &clusterFlags{
			flags: cmd.Flags(), kubeconfig: value("kubeconfig"), context: value("context"), stateNamespace: value("state-namespace"),
		}
		conn, err := at.connect(ctx, w, commandFlags{timeout: completionTimeout}, false, p, slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, _ := list(ctx, conn) // what came in time
		names = slices.DeleteFunc(names, func(name string) bool { return name == "" || printable.Line(name) != name })
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// runNames returns the IDs of the runs whose journals are in the cluster.
func runNames(ctx context.Context, c connection) ([]string, error) {
	journals, err := kube.ListMetadata(ctx, c.raw, func(get *rest.Request) *rest.Request {
		return get.AbsPath("/api/v1/namespaces", c.stateNamespace, "configmaps").Param("labelSelector", state.JournalLabel+"=true")
	})
	var names []string
	for _, m := range journals {
		names = append(names, m.Labels[state.RunLabel])
	}
	return names, err
}

// nodeNames returns the names of the nodes.
func nodeNames(ctx context.Context, c connection) ([]string, error) {
	nodes, err := c.cluster.Nodes(ctx)
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names, err
}

// namespaceNames returns the names of the namespaces.
func namespaceNames(ctx context.Context, c connection) ([]string, error) {
	namespaces, err := kube.ListMetadata(ctx, c.raw, func(get *rest.Request) *rest.Request { return get.AbsPath("/api/v1/namespaces") })
	var names []string
	for _, m := range namespaces {
		names = append(names, m.Name)
	}
	return names, err
}

// poolNames returns the names of the pools of all stores.
func poolNames(ctx context.Context, c connection) ([]string, error) {
	var names []string
	for _, b := range c.backends {
		for pool, err := range b.List(ctx) {
			if err == nil {
				names = append(names, pool.Name)
			}
		}
	}
	return names, nil
}
