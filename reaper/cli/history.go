package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const historyAbout = `history lists the last runs and restores, the latest first: how they ended and
why, how much was due and released, and who started them. With --run, it lists
the allocations of one run, with their pods, and -o json prints its journal. It
is read-only, and reads no store.

The ledger has the last 20 runs that saved it, or failed to. A run writes its
journal before it releases, so it may have an allocation that the run then kept,
because its owner came back: a dry run of restore --run ID tells.
`

const historyExamples = `  # Did the last runs succeed? What did they release?
  %[1]s history%[2]s

  # The last run with a journal, and its addresses
  %[1]s history%[2]s --run latest

  # Keep its journal in a file, from which restore --journal puts them back
  %[1]s history%[2]s --run latest -o json > run.json`

// historyFlags are the flags of the history command.
type historyFlags struct {
	commandFlags
	out outputFlags
	run string
}

func newHistory(w ioStreams, at target) *cobra.Command {
	var f historyFlags
	f.target = at
	cmd := &cobra.Command{
		Use:     "history",
		Short:   "List the last runs: how they ended, and what they released",
		Long:    historyAbout,
		Example: examplesOf(w, at, historyExamples, ""),
		Args:    noArgs,
		RunE:    withEnv(w, func(ctx context.Context, _ []string) error { return history(ctx, w, f) }),
	}
	f.add(cmd.Flags())
	f.out.add(cmd.Flags())
	cmd.Flags().StringVar(&f.run, "run", "", "list the allocations of the run with this `ID`, in upper or lower case; latest is the last one that has a journal")
	return cmd
}

// history runs the command, from its flags to its report. It writes nothing.
func history(ctx context.Context, w ioStreams, f historyFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.output == "html" {
		return ipam.BadInput(errors.New("--output: history has no format \"html\""), "use table, json or yaml")
	}
	printing, err := f.out.options(w, f.output, false)
	if err != nil {
		return err
	}
	p, err := loadPolicy(ctx, w, f.policyFile)
	if err != nil {
		return err
	}
	f.stateOnly = true
	timed, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	conn, err := f.connect(timed, w, false, p, newLogger(w, f.logFormat, f.verbose))
	if err != nil {
		return err
	}
	defer conn.close()
	found := report.NewHistory(conn.Origin.Cluster, conn.StateNamespace)
	found.Node, found.StateDir, found.Warnings = conn.Node, conn.StateDir, conn.Caveats
	partly, err := readHistory(timed, conn, f.run, &found)
	if err != nil {
		return conn.unread(err)
	}
	if f.run == "" && conn.client != nil {
		found.CronJobs = schedulesOf(timed, conn)
	}
	by := conn.runInfo()
	by.FinishedAt = time.Now()
	return errors.Join(partly, print.WriteHistory(w.stdout, printing, found, by))
}

// latest is the value of --run that names the last run with a journal.
const latest = "latest"

// readHistory reads all runs, or one. partly is a *report.PartialError if its journal is
// damaged. If no run has a journal, the latest is the last run; if there are no runs, it reads none.
func readHistory(ctx context.Context, conn connection, run string, found *report.History) (partly, err error) {
	memory, err := conn.Ledgers.Load(ctx)
	if err != nil {
		found.Warnings = append(found.Warnings, "how the last runs ended is unknown: "+printable.Error(err))
	}
	if run == "" || run == latest {
		runs, unread, err := conn.journals.List(ctx)
		found.Warnings = append(found.Warnings, unread...)
		if run == "" || len(runs) == 0 {
			runs = withResults(runs, memory.Runs)
		}
		if err != nil || run == "" || len(runs) == 0 {
			found.Runs = append(found.Runs, runs...)
			return nil, err
		}
		run = runs[0].ID
	}
	past, damage := conn.journals.Read(ctx, run)
	only := func(runs []journal.PastRun) []journal.PastRun {
		return slices.DeleteFunc(withResults(runs, memory.Runs), func(r journal.PastRun) bool { return !strings.EqualFold(r.ID, run) })
	}
	noted := only(nil)
	switch {
	case errors.Is(damage, journal.ErrNone) && len(noted) > 0:
		found.Runs = noted
		found.Runs[0].Entries = []journal.RecordedEntry{}
		return nil, nil
	case damage != nil && !errors.Is(damage, journal.ErrDamaged):
		return nil, damage
	}
	partly = found.AddJournal(past, damage)
	found.Runs = only(found.Runs)
	return partly, nil
}

// withResults adds to runs with a journal how runs ended according to the ledger, including those
// without a journal. It returns the latest first.
func withResults(runs []journal.PastRun, noted []ledger.Run) []journal.PastRun {
	var restores []journal.RestoreResult
	for _, n := range slices.Backward(noted) {
		i := slices.IndexFunc(runs, func(r journal.PastRun) bool { return r.ID == n.ID })
		if i < 0 {
			i = len(runs)
			runs = append(runs, journal.NewPastRun(journal.Run{ID: n.ID, StartedAt: time.Unix(n.Began, 0).UTC(), By: n.By}, []journal.PoolRecord{}))
		}
		r := &journal.Result{DryRun: n.DryRun, Selection: n.Selection, Overrides: n.Overrides, Due: n.Due, NotBegun: n.NotBegun, Error: n.Error}
		if n.Ended {
			r.ExitCode, r.Released = &n.ExitCode, &n.Released
		}
		if n.RestoreOf != "" {
			r.Restore = &journal.RestoreResult{
				ID: n.ID, Of: n.RestoreOf, Restored: n.Restore.Restored, Present: n.Restore.Present, Taken: n.Restore.Taken, Failed: n.Restore.Failed,
			}
			restores = append(restores, *r.Restore)
		}
		runs[i].Result = r
	}
	for i := range runs {
		runs[i].Restores = slices.DeleteFunc(slices.Clone(restores), func(r journal.RestoreResult) bool { return r.Of != runs[i].ID })
	}
	// Only journals have more than the second: the ledger has its runs in their order.
	place := func(r journal.PastRun) int {
		return slices.IndexFunc(noted, func(n ledger.Run) bool { return n.ID == r.ID })
	}
	slices.SortStableFunc(runs, func(a, b journal.PastRun) int {
		return cmp.Or(b.StartedAt.Truncate(time.Second).Compare(a.StartedAt.Truncate(time.Second)), cmp.Compare(place(b), place(a)))
	})
	return runs
}
