package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
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
