package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const inspectAbout = `inspect reads the output of kubectl or etcdctl about IPAM stores, and prints the
report of a dry run: the allocated addresses and their owners. With the pods of the
same cluster, the report also has the addresses that would be released, and the
reasons. inspect contacts nothing.

inspect reads YAML and JSON, also lists and several documents in one file, and the output
of "etcdctl get", with or without keys, or with -w json. It knows these stores:

%sDump the pods last. An address that was allocated after a dump of the pods looks leaked.
`

// inspectStores returns the lines of the help about the stores that inspect knows.
func inspectStores(plugins []plugin.Plugin) string {
	var text strings.Builder
	for _, p := range plugins {
		if p.Offline != nil {
			fmt.Fprintf(&text, "  %s: %s\n", p.Name, strings.ReplaceAll(p.Summary, "`", ""))
		}
	}
	return text.String() + "\n"
}

// inspectExamples is a format for the name of the program.
const inspectExamples = `  etcdctl get --prefix /calico/ipam/v2/ | %[1]s inspect -
  kubectl get ippools.whereabouts.cni.cncf.io -A -o yaml > pools.yaml
  kubectl get pods,statefulsets,nodes -A -o json > pods.json
  %[1]s inspect pools.yaml --pods pods.json`

// inspectFlags are the flags of the inspect command.
type inspectFlags struct {
	policy  string
	pods    string
	output  string
	out     outputFlags
	all     bool
	filters filterFlags
}

func newInspect(w ioStreams) *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use:     "inspect FILE...",
		Short:   "Report dumped stores without contacting anything; - is stdin",
		Long:    fmt.Sprintf(inspectAbout, inspectStores(w.backends)),
		Example: fmt.Sprintf(inspectExamples, w.name()),
		Args:    files,
		RunE:    withEnv(w, func(ctx context.Context, files []string) error { return inspect(ctx, w, f, files) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", "", "policy `FILE`; without one, the defaults")
	flags.StringVar(&f.pods, "pods", "", "`FILE` with all pods of the cluster, and its StatefulSets and nodes")
	flags.StringVarP(&f.output, "output", "o", "table", "report format: "+print.FormatList())
	flags.BoolVar(&f.all, "all", false, "report every allocation, also those in use, and fold none")
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
	found, err := offline(ctx, w, reaper.Options{Policy: p, PolicyFile: f.policy, Selection: selection, Brief: printing.Brief()}, f.pods, files, nil)
	if found == nil {
		return err
	}
	found.Result.ExitCode, found.Result.Error = exitCode(ctx, err), oneLine(err)
	return errors.Join(err, print.Write(w.stdout, printing, *found))
}
