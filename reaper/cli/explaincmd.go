package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/report"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const explainAbout = `explain says of an address, of a pod or of a node which stores have an allocation of it,
and why a run would keep or release it: the rules that were asked until one matched, their
evidence, since when it has been ownerless, when it is due, and what would change that.

Of a pod that hangs, it says for which networks the pod waits. Of these networks, and of a pool, a
network or a CIDR, it says how full they are, how much leaked and why, and what would free it.

It writes nothing. With --from, it reads files as inspect does, and contacts nothing.
`

const explainExamples = `  %[1]s explain 10.0.0.7
  %[1]s explain shop/web-0
  %[1]s explain pod/web-0 -n shop
  %[1]s explain node/node-a
  %[1]s explain 10.0.0.0/24
  %[1]s explain pool/kube-system/10.0.0.0-24
  %[1]s explain 10.0.0.7 --from pools.yaml --pods pods.json`

func newExplain(w ioStreams, at target) *cobra.Command {
	var f lookFlags
	f.target = at
	cmd := &cobra.Command{
		Use:     "explain ADDRESS | CIDR | NAMESPACE/POD | pod/NAME | node/NAME | pool/NAME | NAME",
		Short:   "Say why an address is kept or released, and what would change that",
		Long:    explainAbout,
		Example: fmt.Sprintf(explainExamples, w.name()),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return ipam.BadInput(fmt.Errorf("%d arguments are given, 1 is required", len(args)), cmd.CommandPath()+" ADDRESS, CIDR, NAMESPACE/POD, node/NAME or pool/NAME")
		},
		RunE: withEnv(w, func(ctx context.Context, args []string) error { return explain(ctx, w, f, args[0]) }),
	}
	f.add(cmd.Flags())
	return cmd
}

// An asker is a cluster that knows for which networks a pod asks.
type asker interface {
	Asking(ctx context.Context, namespace, name string) ([]report.Asking, error)
}

// explain runs the command, from its flags to its explanation.
func explain(ctx context.Context, w ioStreams, f lookFlags, subject string) error {
	namespace := ""
	if one := f.filters.selected.Namespaces; len(one) == 1 {
		namespace = one[0]
	}
	question, err := report.ParseQuestion(subject, namespace)
	if err != nil {
		return err
	}
	var asking []report.Asking
	var askErr error
	f.sees = func(c census.Cluster) {
		if c, ok := c.(asker); ok && question.NamesPod() {
			asking, askErr = c.Asking(ctx, question.Namespace, cmp.Or(question.Pod, question.Name))
		}
	}
	found, lookErr := look(ctx, w, f, false)
	if found == nil {
		return lookErr
	}
	if askErr != nil {
		found.Warnings = append(found.Warnings, "what the pod waits for is unknown: "+oneLine(askErr))
	}
	found.Result.ExitCode, found.Result.Error = exitCode(ctx, lookErr), oneLine(lookErr)
	x, err := report.Explain(*found, question, asking, runCommand(w, f, found.Run))
	if err != nil {
		return errors.Join(lookErr, err)
	}
	return errors.Join(lookErr, print.WriteExplanation(w.stdout, f.output, x))
}

// runCommand returns the words of a run on the same target, by the same policy. In a cluster,
// a run that writes requires the context.
func runCommand(w ioStreams, f lookFlags, run report.RunInfo) []string {
	words := append(strings.Fields(w.name()), "run")
	names := []string{"kubeconfig", "state-namespace", "policy"}
	if f.target.scope() == plugin.Node {
		words[len(words)-1] = "node"
		names = []string{"node-name", "state-dir", "runtime-endpoint", "runtime-config", "pods", "kubeconfig", "context", "policy"}
	} else if run.Context != "" {
		words = append(words, "--context", run.Context)
	}
	for _, name := range names {
		if flag := f.flags.Lookup(name); flag.Changed {
			words = append(words, "--"+name, flag.Value.String())
		}
	}
	return words
}
