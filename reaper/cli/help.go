package cli

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width of the help, in columns.
const helpWidth = 80

// A flagGroup is a part of the flags in the help of a command. Its flags are patterns of
// path.Match, in the order in which they are shown. The first group that has a flag shows it.
type flagGroup struct {
	title   string
	command string // the only command that has the group; empty for all
	flags   []string
}

// flagGroups are the groups in their order. The last one has the flags that no other has.
var flagGroups = []flagGroup{
	{"What to put back", "restore", []string{"run", "journal", "only", "pool", "node", "dry-run", "accept-other-cluster"}},
	{"What to look at", "", []string{"namespace", "all-namespaces", "pod", "node", "pool", "backend", "run"}},
	{"What to release", "", []string{"dry-run", "wait", "remember", "release-restored", "unsafe-ignore-*", "accept-new-store"}},
	{"Policy", "", []string{"policy", "grace-period", "min-age", "*policy*"}},
	{"Where to look", "", []string{"context", "kubeconfig", "state-namespace", "from", "pods", "node-name", "state-dir", "runtime-*"}},
	{"Output", "", []string{"output", "quiet", "all", "top", "limit", "no-trunc", "color", "verbose", "log-format"}},
	{"Files and metrics", "", []string{"metrics-file", "push-url", "termination-log"}},
	{"Time and load", "", []string{"timeout", "every", "concurrency"}},
	{"Other flags", "", []string{"*"}},
}

// addHelp makes the command and all below it print their help as this file does, and adds the
// topics. A template would work too, but it looks up methods by name, so the linker could drop
// none: the program would be 12 MB larger.
func addHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		fmt.Fprintln(cmd.OutOrStdout(), strings.Trim(cmp.Or(cmd.Long, cmd.Short), "\n"))
		printUsage(cmd.OutOrStdout(), cmd)
	})
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		printUsage(cmd.OutOrStderr(), cmd)
		return nil
	})
	root.AddCommand(
		&cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodes},
		&cobra.Command{Use: "environment", Short: "The variables that stand for flags", Long: environment},
	)
}

// printUsage prints everything about a command except what it is for, examples first.
func printUsage(out io.Writer, cmd *cobra.Command) {
	if cmd.IsAdditionalHelpTopicCommand() {
		return
	}
	if cmd.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n%s\n", cmd.Example)
	}
	fmt.Fprintf(out, "\nUsage:\n  %s\n", cmd.UseLine())
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(out, "  %s COMMAND\n\nCommands:\n", cmd.CommandPath())
		printCommands(out, cmd, func(sub *cobra.Command) bool { return sub.IsAvailableCommand() || sub.Name() == "help" })
	}
	if cmd.HasHelpSubCommands() {
		fmt.Fprintf(out, "\nHelp topics, as in %s help exit-codes:\n", cmd.CommandPath())
		printCommands(out, cmd, (*cobra.Command).IsAdditionalHelpTopicCommand)
	}
	printFlags(out, cmd)
	switch help := cmd.Root().CommandPath() + " help"; {
	case !cmd.HasParent():
		fmt.Fprintf(out, "\nWithout a command, the flags are those of run: see %s run.\n", help)
	case !isPlain(cmd):
		fmt.Fprintf(out, "\nSee also: %s exit-codes, %[1]s environment\n", help)
	}
}

// printCommands prints the commands below this one for which show is true.
func printCommands(out io.Writer, cmd *cobra.Command, show func(*cobra.Command) bool) {
	for _, sub := range cmd.Commands() {
		if show(sub) {
			fmt.Fprintf(out, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
		}
	}
}

// printFlags prints the flags in their groups. The help of run has those of the root command.
func printFlags(out io.Writer, cmd *cobra.Command) {
	shown := make(map[string]bool)
	for i, group := range flagGroups {
		if group.command != "" && group.command != cmd.Name() {
			continue
		}
		part := pflag.NewFlagSet(group.title, pflag.ContinueOnError)
		part.SortFlags = false
		for _, pattern := range group.flags {
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if ok, err := path.Match(pattern, f.Name); ok && err == nil && !shown[f.Name] {
					shown[f.Name] = true
					part.AddFlag(f)
				}
			})
		}
		if part.HasAvailableFlags() && (cmd.HasParent() || i == len(flagGroups)-1) {
			fmt.Fprintf(out, "\n%s:\n%s", group.title, part.FlagUsagesWrapped(helpWidth))
		}
	}
}

// isPlain reports whether a command is one of those that contact nothing and read no variables:
// they have no policy. Their exit codes are 0 and 2, as in any program.
func isPlain(cmd *cobra.Command) bool { return cmd.Flags().Lookup("policy") == nil }
