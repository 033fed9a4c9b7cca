package cli

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// addCompletions says what may follow the flags and names of a command, and of its
// subcommands: files where nothing else is said. Nothing is contacted for it.
func addCompletions(w ioStreams, cmd *cobra.Command) {
	values := map[string]cobra.CompletionFunc{
		"output":      cobra.FixedCompletions(report.Formats(), cobra.ShellCompDirectiveNoFileComp),
		"context":     contexts(w),
		"policy":      yamlFiles,
		"namespace":   cobra.NoFileCompletions,
		"timeout":     cobra.NoFileCompletions,
		"concurrency": cobra.NoFileCompletions,
		"run":         cobra.NoFileCompletions,
		"only":        cobra.NoFileCompletions,
		"push-url":    cobra.NoFileCompletions,
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if complete := values[f.Name]; complete != nil {
			// It fails for a flag that there is not, or that has one already.
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

// yamlFiles are the files that a policy may be.
func yamlFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// contexts are those of the kubeconfig that the command line, or a variable, names.
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
		return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
	}
}
