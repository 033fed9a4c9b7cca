package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const inspectAbout = `inspect reads YAML or JSON from dump, kubectl or "etcdctl get -w json", and
prints the report of a dry run. With the pods of the same cluster, that says
which addresses would be released, and why. It contacts nothing.

It knows the stores of the backends %s.

Dump the pods last: an address that was allocated after them looks leaked.
`

const inspectExamples = `  # What has leaked, and what would be released?
  %[1]s dump --context prod > dump.json
  %[1]s inspect dump.json

  # With Calico in etcd
  etcdctl get --prefix /calico/ -w json | %[1]s inspect dump.json -`

// inspectFlags are the flags of the inspect command.
type inspectFlags struct {
	policy  string
	output  string
	out     outputFlags
	all     bool
	filters filterFlags
}

func newInspect(w ioStreams) *cobra.Command {
	var f inspectFlags
	known := slices.DeleteFunc(slices.Clone(w.backends), func(p plugin.Plugin) bool { return p.Scope != plugin.Cluster || p.Open == nil })
	cmd := &cobra.Command{
		Use:     "inspect FILE...",
		Short:   "Report from dumped files, without contacting anything",
		Long:    fmt.Sprintf(inspectAbout, strings.Join(backendNames(known), ", ")),
		Example: fmt.Sprintf(inspectExamples, w.name()),
		Args:    files,
		RunE:    withEnv(w, func(ctx context.Context, files []string) error { return inspect(ctx, w, f, files) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", "", "judge by this policy `FILE`; without one, by that of the dump, or the defaults")
	flags.StringVarP(&f.output, "output", "o", "table", "print the report in this `FORMAT`: "+listOf(print.Formats()))
	flags.BoolVar(&f.all, "all", false, "list every allocation, even those in use, and fold none")
	f.out.add(flags)
	f.filters.add(flags, plugin.Cluster)
	return cmd
}

// inspect runs the command, from its files to its report.
func inspect(ctx context.Context, w ioStreams, f inspectFlags, files []string) error {
	printing, err := f.out.options(w, f.output, f.all)
	if err != nil {
		return err
	}
	selection, err := f.filters.selection(w.backends)
	if err != nil {
		return err
	}
	p, err := loadPolicy(ctx, w, f.policy)
	if err != nil {
		return err
	}
	found, _, err := offline(ctx, w, reaper.Options{Policy: p, PolicyFile: f.policy, Selection: selection, Brief: printing.Brief()}, files, func(*policy.Policy) {})
	if found == nil {
		return err
	}
	found.Result.ExitCode, found.Result.Error = exitCode(ctx, err), oneLine(err)
	return errors.Join(err, print.Write(w.stdout, printing, *found))
}
