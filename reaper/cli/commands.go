package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const about = `ip-reaper releases the pod addresses that IPAM still holds for pods that no
longer exist. It never releases an address in use. When in doubt, it keeps the
address.

A run is a dry run, which only shows what would be released, unless
--dry-run=false says otherwise. Outside a cluster, it takes the installed policy
by default: ConfigMap ip-reaper-policy in the state namespace. The dryRun of a
policy is for the CronJob and for nodes.
`

const pluginAbout = `
To have kubectl complete its command line, put the program on the PATH under the
name ` + kubectlComplete + ` too.
`

// examples is a format for the name of the program, like all examples.
const examples = `  # What has leaked, and what would be released? This writes nothing.
  %[1]s --context prod

  # Why is this address kept or released? Why does this pod wait?
  %[1]s explain --context prod 10.0.0.7
  %[1]s explain --context prod shop/web-0

  # Which pools run dry?
  %[1]s pools --context prod

  # Release what is due, and put it back
  %[1]s run --context prod --dry-run=false
  %[1]s restore --context prod --run ID --dry-run=false`

const nodeAbout = `node finds leaked addresses in the stores of the node it runs on, such as the
leases of host-local, and releases them if the policy says so. The container
runtime tells which pod sandboxes exist: an address whose sandbox exists, in any
state, is kept. No API server is needed. With --pods api, addresses that pods of
this node show are kept too.

The ledger, the journals and the lock are files in --state-dir.
`

const nodeExamples = `  # What has leaked on this node? This writes nothing.
  %[1]s node

  # Why is this address kept or released?
  %[1]s node explain 10.88.0.7

  # Release what is due, and put it back
  %[1]s node --policy policy.yaml --dry-run=false
  %[1]s node restore --run ID --dry-run=false

  # Run every 15 minutes, with metrics for node_exporter
  %[1]s node --every 15m --policy policy.yaml \
    --metrics-file /var/lib/node_exporter/ip-reaper.prom`

// examplesOf returns the examples of a command for its target. %[1]s stands for the words that
// start the program, and %[2]s for the flag that names a cluster. more is for clusters only.
func examplesOf(w ioStreams, at target, text, more string) string {
	if at.scope() == plugin.Node {
		return fmt.Sprintf(text, w.name()+" node", "")
	}
	return fmt.Sprintf(text+more, w.name(), " --context prod")
}

// newRoot returns the command tree. The root command is the run command.
func newRoot(w ioStreams) *cobra.Command {
	root := newRun(w, new(clusterFlags))
	root.Use = "ip-reaper"
	root.Long = about
	root.Example = fmt.Sprintf(examples, w.name())
	root.Version = longVersion()
	root.SetOut(w.stdout)
	root.SetErr(w.stderr)
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return ipam.BadInput(err, flagHint(cmd, err))
	})
	addHelp(root)
	root.AddCommand(newRun(w, new(clusterFlags)), newRestore(w, new(clusterFlags)), newHistory(w, new(clusterFlags)),
		newExplain(w, new(clusterFlags)), newPools(w, new(clusterFlags)), newNode(w), newInspect(w), newPolicy(w), newVersion())
	if w.kubectl { // shells complete by kubectl
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: w.name()}
		root.Long += pluginAbout
		root.CompletionOptions.DisableDefaultCmd = true
	}
	root.InitDefaultCompletionCmd()
	addCompletions(w, root)
	return root
}

// newNode returns the run command of a node, with the other commands of a node below it.
func newNode(w ioStreams) *cobra.Command {
	cmd := newRun(w, new(nodeFlags))
	cmd.Use = "node"
	cmd.Short = "Find and release leaked addresses in the stores of this node"
	cmd.Long = nodeAbout
	cmd.Example = fmt.Sprintf(nodeExamples, w.name())
	cmd.AddCommand(newRestore(w, new(nodeFlags)), newHistory(w, new(nodeFlags)), newExplain(w, new(nodeFlags)), newPools(w, new(nodeFlags)))
	return cmd
}

// Documented returns the command tree with these backends, for a tool that writes man pages.
// The long text of the root command is Markdown, and has the exit codes and the variables of
// all commands. The commands cannot be run.
func Documented(plugins []plugin.Plugin) *cobra.Command {
	root := newRoot(ioStreams{backends: plugins})
	root.Long += "\n\n# EXIT STATUS\n\n```\n" + exitCodes + "```\n\n# ENVIRONMENT\n\n" + environment
	return root
}

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
			"context":    contexts(w),
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
		case cmd.Name() == "validate":
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

// plainUsages removes the marks around the name of the value from the usages of flags,
// because completions show usages as they are.
func plainUsages(root *cobra.Command) {
	visitCommands(root, func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
	})
}
