package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// completionTimeout is how long a shell waits for names from the API server.
const completionTimeout = 2 * time.Second

// stateNamespace stands in a path for the namespace of the state.
const stateNamespace = "STATE-NAMESPACE"

// The lists whose names complete flags.
const (
	namespacesPath = "/api/v1/namespaces"
	nodesPath      = "/api/v1/nodes"
	journalsPath   = namespacesPath + "/" + stateNamespace + "/configmaps"
)

// fromCluster completes to the names of the objects of a list on the cluster of the command
// line; for journals, to the IDs of their runs. It is silent about errors. It leaves out
// names that are not printable.
func fromCluster(w ioStreams, path string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if err := fromEnv(cmd.Flags(), w.env); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		value := func(flag string) string {
			if f := cmd.Flag(flag); f != nil { // inspect contacts nothing, and has none of these
				return f.Value.String()
			}
			return ""
		}
		config, _, namespace, err := loadConfig(clusterFlags{kubeconfig: value("kubeconfig"), context: value("context")}, w.env)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		prepare(config, commandFlags{})
		client, err := kube.RawClient(config)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		objects, _ := kube.ListMetadata(ctx, client, func(get *rest.Request) *rest.Request { // what came in time
			get = get.AbsPath(strings.Replace(path, stateNamespace, cmp.Or(value("state-namespace"), namespace), 1))
			if path == journalsPath {
				get = get.Param("labelSelector", kube.JournalLabel+"=true")
			}
			return get
		})
		var names []string
		for _, m := range objects {
			name := m.Name
			if path == journalsPath {
				name = m.Labels[kube.RunLabel]
			}
			if name != "" && printable.Line(name) == name {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}
