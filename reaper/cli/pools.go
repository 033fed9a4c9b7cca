package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const poolsAbout = `pools shows how full the networks are, the fullest first: how many addresses
pods have, how many are leaked, and how many are free. A network is an IPPool of
Calico, or a range of Whereabouts with all of its attachments. The capacity
counts only addresses that pods can get. Below are pods that wait for one, and
what their events say. It is read-only.
`

const poolsExamples = `  # Which networks run dry?
  %[1]s pools%[2]s

  # Which nodes leak most? How old are the leaks?
  %[1]s pools%[2]s --top nodes
  %[1]s pools%[2]s --top ages

  # Every pool of every network, for jq
  %[1]s pools%[2]s --all -o json`

const poolsFiles = `

  # From a dump
  %[1]s pools --from dump.json`

// poolsFlags are the flags of the pools command.
type poolsFlags struct {
	lookFlags
	all   bool
	top   []string
	limit int
}

func newPools(w ioStreams, at target) *cobra.Command {
	var f poolsFlags
	f.target = at
	cmd := &cobra.Command{
		Use:     "pools",
		Short:   "Show how full networks and pools are, and who leaks most",
		Long:    poolsAbout,
		Example: examplesOf(w, at, poolsExamples, poolsFiles),
		Args:    noArgs,
		RunE:    withEnv(w, func(ctx context.Context, _ []string) error { return pools(ctx, w, f) }),
	}
	flags := cmd.Flags()
	f.add(flags)
	flags.BoolVar(&f.all, "all", false, "list the pools of each network below it")
	flags.StringArrayVar(&f.top, "top", nil, "also show who leaks most, by `WHAT`: "+listOf(print.Tops()))
	flags.IntVar(&f.limit, "limit", 10, "show this `NUMBER` of rows of --top, and of pools without a network unless --all is given")
	return cmd
}

// pools runs the command, from its flags to its tables.
func pools(ctx context.Context, w ioStreams, f poolsFlags) error {
	top := strings.Join(f.top, ",") // two of them are one that is unknown
	if top != "" && !slices.Contains(print.Tops(), top) {
		return ipam.BadInput(fmt.Errorf("--top: unknown %q", top), "use "+listOf(print.Tops()))
	}
	if f.limit < 1 {
		return ipam.BadInput(fmt.Errorf("--limit: %d is less than 1", f.limit), "")
	}
	found, cluster, err := look(ctx, w, f.lookFlags, true)
	if found == nil {
		return err
	}
	options := print.Options{Format: f.output, All: f.all, Top: top, Limit: f.limit, Width: w.width()}
	options.Asking = askingOf(ctx, cluster, found, found.Waiting())
	return errors.Join(err, print.WritePools(w.stdout, options, *found))
}
