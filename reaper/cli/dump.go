package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

const dumpAbout = `dump prints the lists, the installed policy and the ledger by which a dry run
judges, for inspect, explain --from and pools --from, and the events and
namespaces of pods that wait. Of pods, nodes, StatefulSets and virtual machines,
it prints only the fields that count: no images, no environment, no volumes. The
objects of IPAM stores are whole.
Calico's etcd is not in it: dump that with etcdctl.
`

const dumpExamples = `  %[1]s dump --context prod > dump.json

  # Elsewhere, at any time, without a cluster
  %[1]s inspect dump.json
  %[1]s pools --from dump.json`

func newDump(w ioStreams) *cobra.Command {
	f := lookFlags{recording: kube.NewRecording(state.Dumped)}
	f.target = new(clusterFlags)
	f.opened = new(connection)
	cmd := &cobra.Command{
		Use:     "dump",
		Short:   "Print all that verdicts rest on, to inspect it elsewhere",
		Long:    dumpAbout,
		Example: examplesOf(w, f.target, dumpExamples, ""),
		Args:    noArgs,
		RunE: withEnv(w, func(ctx context.Context, _ []string) error {
			if f.output != "json" {
				return ipam.BadInput(fmt.Errorf("--output: a dump is not %s", f.output), "leave the flag out")
			}
			var encoded []byte
			found, _, err := look(ctx, w, f, true)
			if found == nil {
				return err
			}
			if c, ok := f.opened.Cluster.(*state.Cluster); ok && found.Living != nil {
				maps.Copy(f.recording.Lists, c.Evidence(ctx, found.Living.Pods()))
			}
			memory, unread := f.opened.Ledgers.Load(ctx)
			if err = cmp.Or(err, unread); !memory.Equal(ledger.Ledger{}) {
				memory.Runs = nil // it is nobody's business who ran what
				encoded = memory.Encode()
			}
			return errors.Join(err, dump.Write(w.stdout, f.recording, encoded, f.opened.policy, time.Now(), buildVersion(), err))
		}),
	}
	f.commandFlags.add(cmd.Flags())
	f.output = "json"
	output := cmd.Flags().Lookup("output")
	output.DefValue, output.Usage = f.output, "the `FORMAT` is json, with one object on a line"
	f.overrides.flags, f.filters.flags = cmd.Flags(), cmd.Flags()
	return cmd
}
