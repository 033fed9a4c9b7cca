package cli

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

// addCompletions adds the shell completion of the flags and arguments of a command and
// of its subcommands. Flags that are not listed complete to files. Only the names of runs,
// nodes and namespaces come from the API server.
func addCompletions(w ioStreams, cmd *cobra.Command) {
	scope := plugin.Cluster
	if cmd.Flags().Lookup("state-dir") != nil {
		scope = plugin.Node
	}
	values := map[string]cobra.CompletionFunc{
		"output":          cobra.FixedCompletions(print.Formats(), cobra.ShellCompDirectiveNoFileComp),
		"color":           cobra.FixedCompletions([]cobra.Completion{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp),
		"log-format":      cobra.FixedCompletions(logFormats, cobra.ShellCompDirectiveNoFileComp),
		"context":         contexts(w),
		"policy":          yamlFiles,
		"state-namespace": fromCluster(w, namespacesPath),
		"namespace":       fromCluster(w, namespacesPath),
		"node":            fromCluster(w, nodesPath),
		"backend":         cobra.FixedCompletions(backendNames(plugin.Of(w.backends, scope)), cobra.ShellCompDirectiveNoFileComp),
		"run":             fromCluster(w, journalsPath),
	}
	free := []string{"timeout", "grace-period", "min-age", "wait", "concurrency", "only", "push-url", "pod", "pool", "every", "node-name"}
	if scope == plugin.Node { // a shell may not ask the container runtime
		free = append(free, "namespace", "run")
		values["pods"] = cobra.FixedCompletions(podSources, cobra.ShellCompDirectiveNoFileComp)
	}
	for _, name := range free {
		values[name] = cobra.NoFileCompletions
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		complete := values[f.Name]
		if cmd.Name() == "version" && f.Name == "output" {
			complete = cobra.FixedCompletions(versionFormats, cobra.ShellCompDirectiveNoFileComp)
		}
		if complete != nil {
			// It fails for a flag that already has a completion.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete)
		}
	})
	switch cmd.Name() {
	case "validate":
		cmd.ValidArgsFunction = yamlFiles
	case "inspect":
	default:
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range cmd.Commands() {
		addCompletions(w, sub)
	}
}

// yamlFiles completes to the files that may hold a policy.
func yamlFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// contexts completes to the contexts of the kubeconfig, which a flag or a variable may
// name. It leaves out names that are not printable.
func contexts(w ioStreams) cobra.CompletionFunc {
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
		names := slices.Sorted(maps.Keys(config.Contexts))
		names = slices.DeleteFunc(names, func(name string) bool { return printable.Line(name) != name })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completes reports whether a shell asks for completions.
func completes(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// plainUsages removes the marks from the usages of flags that name the value, because
// completions show usages as they are.
func plainUsages(root *cobra.Command) {
	visitCommands(root, func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
	})
}
