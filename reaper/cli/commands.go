package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

const about = `ip-reaper releases the pod addresses that IPAM still holds for pods that no
longer exist. It never releases an address in use. When in doubt, it keeps the
address.

A run is a dry run, which only shows what would be released, unless
--dry-run=false says otherwise. By default, it takes the installed policy:
ConfigMap ip-reaper-policy in the state namespace. The dryRun of a policy is for
the CronJob and for nodes.
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
		newStatus(w, new(clusterFlags)), newExplain(w, new(clusterFlags)), newPools(w, new(clusterFlags)), newDump(w), newInspect(w), newNode(w), newPolicy(w), newVersion())
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
	{"What to put back", "restore", []string{"run", "journal", "ip", "pool", "node", "dry-run", "accept-other-cluster", "accept-second-address"}},
	{"What to look at", "", []string{"namespace", "exclude-namespace", "all-namespaces", "pod", "node", "pool", "ip", "backend", "run"}},
	{"What to release", "", []string{"dry-run", "wait", "remember", "release-restored", "unsafe-ignore-*", "accept-new-store"}},
	{"Policy", "", []string{"policy", "grace-period", "min-age", "*policy*"}},
	{"Where to look", "", []string{"context", "kubeconfig", "server", "cluster", "user", "as", "as-*", "state-namespace", "from", "pods", "node-name", "state-dir", "runtime-*"}},
	{"Output", "", []string{"output", "quiet", "all", "top", "limit", "no-trunc", "color", "verbose", "log-format"}},
	{"Files and metrics", "", []string{"metrics-file", "push-url", "termination-log"}},
	{"Time and load", "", []string{"timeout", "request-timeout", "every", "concurrency"}},
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
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Args = func(_ *cobra.Command, args []string) error {
		about, rest, _ := root.Find(args)
		return noArgs(about, rest)
	}
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
					plain := *f // without what pflag prints behind a switch: [=true|false]
					if f.Value.Type() == "bool" {
						plain.Value = struct{ pflag.Value }{f.Value}
					}
					part.AddFlag(&plain)
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

// noArgs refuses arguments as a mistake in usage.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if wait := cmd.Flags().Lookup("wait"); wait != nil && wait.Changed && wait.Value.Set(args[0]) == nil {
		return ipam.BadInput(fmt.Errorf("unknown argument %q", args[0]), "give --wait="+args[0])
	}
	var commands []string
	for _, sub := range cmd.Commands() {
		commands = append(commands, sub.Name())
	}
	return ipam.BadInput(fmt.Errorf("unknown argument %q", args[0]), cmp.Or(printable.Meant(args[0], commands), seeHelp(cmd)))
}

// files requires an argument, or several if the command takes them.
func files(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1 && !strings.Contains(cmd.Use, "..."):
		return noArgs(cmd, args[1:])
	case len(args) > 0:
		return nil
	}
	return ipam.BadInput(fmt.Errorf("%s needs a file", cmd.Name()), cmd.CommandPath()+" FILE, or - for stdin")
}

// seeHelp is the hint for a mistake in what was typed.
func seeHelp(cmd *cobra.Command) string { return "see " + cmd.CommandPath() + " --help" }

// flagHint is the hint for a mistake in a flag.
func flagHint(cmd *cobra.Command, err error) string {
	if !cmd.HasParent() { // its flags are those of run
		cmd, _, _ = cmd.Find([]string{"run"})
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return seeHelp(cmd)
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
	return cmp.Or(printable.Meant("--"+unknown.GetSpecifiedName(), flags), seeHelp(cmd))
}

// visitCommands calls visit with a command and all commands below it.
func visitCommands(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		visitCommands(sub, visit)
	}
}
