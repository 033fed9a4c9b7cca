package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

const nodeAbout = `node finds leaked addresses in the stores of the node on which it runs, such as the
leases of host-local, and releases them if the policy says so. The container runtime says
which pod sandboxes exist. An address whose sandbox exists in any state is kept, and no API
server is needed. With --pods api, an address that a pod of this node shows is kept too.

Ledger, journals and lock are files in --state-dir.
`

const nodeExamples = `  %[1]s node
  %[1]s node --policy policy.yaml --dry-run=false
  %[1]s node --every 15m --policy policy.yaml --metrics-file /var/lib/node_exporter/ip-reaper.prom
  %[1]s node restore --run ID`

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
