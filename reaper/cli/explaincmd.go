package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/report"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const explainAbout = `explain says of an address, of a pod or of a node which stores have an allocation of it,
and why a run would keep or release it: the rules that were asked until one matched, their
evidence, since when it has been ownerless, when it is due, and what would change that.

It writes nothing. With --from, it reads files as inspect does, and contacts nothing.
`

const explainExamples = `  %[1]s explain 10.0.0.7
  %[1]s explain shop/web-0
  %[1]s explain pod/web-0 -n shop
  %[1]s explain node/node-a
  %[1]s explain 10.0.0.7 --from pools.yaml --pods pods.json`

func newExplain(w ioStreams, at target) *cobra.Command {
	var f lookFlags
	f.target = at
	cmd := &cobra.Command{
		Use:     "explain ADDRESS | NAMESPACE/POD | pod/NAME | node/NAME | NAME",
		Short:   "Say why an address is kept or released, and what would change that",
		Long:    explainAbout,
		Example: fmt.Sprintf(explainExamples, w.name()),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return ipam.BadInput(fmt.Errorf("%d arguments are given, 1 is required", len(args)), cmd.CommandPath()+" ADDRESS, NAMESPACE/POD or node/NAME")
		},
		RunE: withEnv(w, func(ctx context.Context, args []string) error { return explain(ctx, w, f, args[0]) }),
	}
	f.add(cmd.Flags())
	return cmd
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
	found, lookErr := look(ctx, w, f, false)
	if found == nil {
		return lookErr
	}
	found.Result.ExitCode, found.Result.Error = exitCode(ctx, lookErr), oneLine(lookErr)
	x, err := report.Explain(*found, question, runCommand(w, f, found.Run))
	if err != nil {
		return errors.Join(lookErr, err)
	}
	return errors.Join(lookErr, print.WriteExplanation(w.stdout, f.output, x))
}

// runCommand returns the words of a run on the same target, by the same policy. In a cluster,
// a run that writes requires the context.
func runCommand(w ioStreams, f lookFlags, run report.RunInfo) []string {
	words := append(strings.Fields(w.name()), "run")
	names := []string{"kubeconfig", "state-namespace", "policy", "grace-period", "min-age"}
	if f.target.scope() == plugin.Node {
		words[len(words)-1] = "node"
		names = []string{"node-name", "state-dir", "runtime-endpoint", "runtime-config", "pods", "kubeconfig", "context", "policy", "grace-period", "min-age"}
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
