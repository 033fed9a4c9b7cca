package cli

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// addCompletions adds the shell completion of the flags and arguments of a command and
// of its subcommands. Flags that are not listed complete to files. Completion contacts
// nothing.
func addCompletions(w ioStreams, cmd *cobra.Command) {
	values := map[string]cobra.CompletionFunc{
		"output":       cobra.FixedCompletions(report.Formats(), cobra.ShellCompDirectiveNoFileComp),
		"context":      contexts(w),
		"policy":       yamlFiles,
		"namespace":    cobra.NoFileCompletions,
		"timeout":      cobra.NoFileCompletions,
		"grace-period": cobra.NoFileCompletions,
		"min-age":      cobra.NoFileCompletions,
		"wait":         cobra.NoFileCompletions,
		"concurrency":  cobra.NoFileCompletions,
		"run":          cobra.NoFileCompletions,
		"only":         cobra.NoFileCompletions,
		"push-url":     cobra.NoFileCompletions,
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if complete := values[f.Name]; complete != nil {
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
