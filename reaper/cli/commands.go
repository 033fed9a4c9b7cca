package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

const about = `ip-reaper gives back the addresses that IPAM stores hold for pods that no
longer exist. An address in use is never released. When in doubt, the address is kept.

A run only says what it would do, unless --dry-run=false or the FILE of --policy says
otherwise. Outside a cluster, the policy is by default the one that is installed there:
ConfigMap ip-reaper-policy in the state namespace. Its dryRun is for the CronJob alone.
`

const pluginAbout = `
kubectl completes its command line if the PATH has the program by the name
` + kubectlComplete + ` too.
`

const nodeAbout = `node finds leaked addresses in the stores of the node on which it runs, such as the
leases of host-local, and releases them if the policy says so. The container runtime says
which pod sandboxes exist. An address whose sandbox exists in any state is kept, and no API
server is needed. With --pods api, an address that a pod of this node shows is kept too.

Ledger, journals and lock are files in --state-dir.
`

// nodeExamples is a format for the name of the program.
const nodeExamples = `  %[1]s node
  %[1]s node --policy policy.yaml --dry-run=false
  %[1]s node --every 15m --policy policy.yaml --metrics-file /var/lib/node_exporter/ip-reaper.prom
  %[1]s node restore --run ID`

// newRoot returns the command tree. The root command is the run command.
func newRoot(w ioStreams) *cobra.Command {
	root := newRun(w, new(clusterFlags))
	root.Use = "ip-reaper"
	root.Long = about
	root.Version = longVersion()
	root.SetOut(w.stdout)
	root.SetErr(w.stderr)
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return ipam.BadInput(err, "see "+cmd.CommandPath()+" --help")
	})
	root.SetUsageFunc(usage(root.UsageFunc()))
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

// newNode returns the run command of a node, with the other commands of a node below.
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
// The long text of a command is Markdown, and has its exit codes and variables. The commands
// cannot be run.
func Documented(plugins []plugin.Plugin) *cobra.Command {
	root := newRoot(ioStreams{backends: plugins})
	section := func(text string) string {
		title, body, _ := strings.Cut(text, "\n")
		return "\n\n# " + title + "\n\n```\n" + body + "```\n"
	}
	visitCommands(root, func(cmd *cobra.Command) {
		if !isPlain(cmd) {
			cmd.Long = cmp.Or(cmd.Long, cmd.Short) + section(exitStatus) + section(envHelp)
		}
	})
	return root
}

// isPlain reports whether a command is one of those that contact nothing and read no variables:
// they have no policy. Their exit codes are 0 and 2, as those of any program.
func isPlain(cmd *cobra.Command) bool { return cmd.Flags().Lookup("policy") == nil }

// usage returns what prints the usage, as cobra does, and unless the command is plain the
// exit codes and the variables below. A template would do too, but it looks up methods by their
// names, so the linker could leave none out: the program would have 12 MB more.
func usage(common func(*cobra.Command) error) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		if err := common(cmd); err != nil || isPlain(cmd) {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStderr(), "\n%s\n%s", exitStatus, envHelp)
		return err
	}
}
