package cli

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

// addCompletions adds the shell completion of the flags and arguments of a command and
// of its subcommands: to their values, to files, or to names in the cluster.
func addCompletions(w ioStreams, root *cobra.Command) {
	fixed := func(values []string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	visitCommands(root, func(cmd *cobra.Command) {
		scope, formats := plugin.Cluster, print.Formats()
		values := map[string]cobra.CompletionFunc{
			"color":      fixed([]string{"auto", "always", "never"}),
			"log-format": fixed(logFormats),
			"top":        fixed(print.Tops()),
			"context":    kubeconfigNames(w, func(c *api.Config) []string { return slices.Collect(maps.Keys(c.Contexts)) }),
			"cluster":    kubeconfigNames(w, func(c *api.Config) []string { return slices.Collect(maps.Keys(c.Clusters)) }),
			"user":       kubeconfigNames(w, func(c *api.Config) []string { return slices.Collect(maps.Keys(c.AuthInfos)) }),
			"policy":     yamlFiles,

			"unsafe-ignore-limit": fixed(judge.LimitNames()),
		}
		if cmd.Flags().Lookup("state-dir") != nil {
			scope, values["pods"] = plugin.Node, fixed(podSources)
		} else {
			for kind := range clusterLists {
				values[kind] = func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
					return clusterNames(cmd, w, kind), cobra.ShellCompDirectiveNoFileComp
				}
			}
		}
		switch cmd.Name() {
		case "explain", "pools":
			formats = print.LookFormats()
		case "version":
			formats = []string{"json"}
		}
		for i := range formats {
			formats[i] = strings.TrimSuffix(formats[i], "TEMPLATE") // which the user types
		}
		values["output"], values["backend"] = fixed(formats), fixed(backendNames(plugin.Of(w.backends, scope)))
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			complete := values[f.Name]
			named, _ := pflag.UnquoteUsage(f)
			if complete == nil && !slices.Contains([]string{"FILE", "FILES", "FOLDER", "SOCKET"}, named) {
				complete = cobra.NoFileCompletions
			}
			if complete != nil {
				_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // it fails for cobra's own flags
			}
		})
		switch {
		case cmd.Name() == "validate", cmd.Name() == "install":
			cmd.ValidArgsFunction = yamlFiles
		case cmd.Name() == "explain" && scope == plugin.Cluster:
			cmd.ValidArgsFunction = func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
				kind, _, _ := strings.Cut(typed, "/")
				var names []string
				if kind == "node" || kind == "pool" {
					for _, name := range clusterNames(cmd, w, kind) {
						names = append(names, kind+"/"+name)
					}
				}
				return names, cobra.ShellCompDirectiveNoFileComp
			}
		case !strings.Contains(cmd.Use, "FILE..."):
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
	})
}

// yamlFiles completes to the files that may hold a policy.
func yamlFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// kubeconfigNames completes to names in the kubeconfig, which a flag or a variable may name. It
// leaves out those that are not printable.
func kubeconfigNames(w ioStreams, namesOf func(*api.Config) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if err := fromEnv(cmd.Flags(), w.env); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = cmd.Flag("kubeconfig").Value.String()
		config, err := rules.Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return offered(namesOf(config)), cobra.ShellCompDirectiveNoFileComp
	}
}

// offered returns the names that are printable, sorted.
func offered(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return printable.Line(name) != name })
}

// clusterLists are the lists of the API server that have what a flag, or explain, takes. STATE is the state
// namespace, where journals have the runs as labels.
var clusterLists = map[string][]string{
	"exclude-namespace": {"/api/v1/namespaces"},
	"namespace":         {"/api/v1/namespaces"},
	"node":              {"/api/v1/nodes"},
	"pool":              {"/apis/whereabouts.cni.cncf.io/v1alpha1/ippools", "/apis/crd.projectcalico.org/v1/ippools", "/apis/projectcalico.org/v3/ippools"},
	"run":               {"/api/v1/namespaces/STATE/configmaps?labelSelector=" + state.RunLabel},
}

// clusterNames returns the names of a kind in the cluster that the flags of a command name. It has none of a
// list that does not come in time.
func clusterNames(cmd *cobra.Command, w ioStreams, kind string) (names []string) {
	ctx, cancel := context.WithTimeout(cmd.Context(), stateTimeout)
	defer cancel()
	at, flags := new(clusterFlags), pflag.NewFlagSet("", pflag.ContinueOnError)
	at.add(flags)
	_ = fromEnv(cmd.Flags(), w.env) // what is wrong there, the command says
	_ = flags.Parse(given(cmd.Flags(), slices.Concat(clientFlags, []string{"context", "kubeconfig", "state-namespace"})...))
	c, err := at.contact(ctx, w, connectOptions{commandFlags: commandFlags{timeout: stateTimeout, concurrency: defaultConcurrency}})
	if err != nil {
		return nil
	}
	for _, list := range clusterLists[kind] {
		items, _ := kube.ListMetadata(ctx, kube.InPages(c.raw), func(get *rest.Request) *rest.Request {
			return get.RequestURI(strings.Replace(list, "STATE", c.stateIn, 1))
		})
		for _, item := range items {
			names = append(names, cmp.Or(item.Labels[state.RunLabel], item.Name))
		}
	}
	return offered(names)
}

// completes reports whether a shell asks for completions.
func completes(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// plainUsages removes the marks around the name of the value from the usages of flags,
// because completions show usages as they are.
func plainUsages(root *cobra.Command) {
	visitCommands(root, func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
	})
}
