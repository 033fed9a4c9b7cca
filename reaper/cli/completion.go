package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

// addCompletions adds the shell completion of the flags and arguments of a command and
// of its subcommands: to their values, or to files. It contacts nothing.
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
		names := slices.Sorted(slices.Values(namesOf(config)))
		names = slices.DeleteFunc(names, func(name string) bool { return printable.Line(name) != name })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
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
