package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

const inspectAbout = `inspect reads what kubectl or etcdctl printed of IPAM stores, and prints the
report of a dry run: which addresses are allocated, and to whom. With the pods of
the same cluster it says too what would be released, and why. It contacts nothing.

It reads, as YAML or JSON, lists and several documents in one file included:

  Whereabouts  IPPools and OverlappingRangeIPReservations
  Calico       IPAMBlocks and IPAMHandles; in etcd, what "etcdctl get" prints of
               them, with or without keys, also with -w json

Dump the pods last: an address that was allocated in between looks leaked.
`

// inspectExamples takes the name of the program.
const inspectExamples = `  etcdctl get --prefix /calico/ipam/v2/ | %[1]s inspect -
  kubectl get ippools.whereabouts.cni.cncf.io -A -o yaml > pools.yaml
  kubectl get pods,statefulsets,nodes -A -o json > pods.json
  %[1]s inspect pools.yaml --pods pods.json`

// inspectFlags are the flags of the inspect command.
type inspectFlags struct {
	policy string
	pods   string
	output string
	all    bool
}

func newInspect(w ioStreams) *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use:     "inspect FILE...",
		Short:   "Look at dumped stores, without contacting anything; - is stdin",
		Long:    inspectAbout,
		Example: fmt.Sprintf(inspectExamples, w.name()),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return reaper.BadInput(errors.New("no file given"), cmd.CommandPath()+" FILE, or - for stdin")
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := fromEnv(cmd.Flags(), w.env); err != nil {
				return err
			}
			return inspect(cmd.Context(), w, f, files)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", "", "policy `FILE`; without one, the defaults")
	flags.StringVar(&f.pods, "pods", "", "`FILE` with all pods of the cluster, and its StatefulSets and nodes")
	flags.StringVarP(&f.output, "output", "o", "table", "report format: "+report.FormatList())
	flags.BoolVar(&f.all, "all", false, "report the entries that are in use too, as -o wide does")
	return cmd
}

// inspect is one look, from files to report.
func inspect(ctx context.Context, w ioStreams, f inspectFlags, files []string) error {
	if err := checkOutput(f.output); err != nil {
		return err
	}
	p, err := loadPolicy(w, f.policy)
	if err != nil {
		return err
	}
	read, err := dump.Read(ctx, w.stdin, files, f.pods)
	if err != nil {
		return err
	}
	stores, unknown := backends.Offline(read.Stored)
	o := reaper.Options{
		ID: newID(), Version: buildVersion(), Policy: p, Backends: stores,
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
	if f.pods != "" {
		o.Cluster = &read.Cluster
	}
	found, lookErr := reaper.Inspect(ctx, o)
	found.Warnings = slices.Concat(dump.Ignored(unknown), found.Warnings)
	if len(stores) == 0 {
		found.Warnings = append(found.Warnings, "the files have nothing of a store that ip-reaper knows")
	}
	return errors.Join(lookErr, report.Write(w.stdout, f.output, f.all, found))
}
