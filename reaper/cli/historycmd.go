package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/report"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const historyAbout = `history lists the runs that have a journal, the latest first: when they began,
who started them, and how many allocations of which pools they were about to
release. With --run, it lists the allocations of one run, with their pods. It is
read-only, and reads the journals only, no store.

A run writes its journal before it releases. So the journal may have an
allocation that the run then kept, because its owner came back: restore --run ID
--dry-run compares it with the stores. The policy says how long journals are
kept, in journal.keep and journal.keepFor.
`

const historyExamples = `  # Which runs released something?
  %[1]s history%[2]s

  # What did the last one release?
  %[1]s history%[2]s --run latest`

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
		Short:   "List the last runs that released, and what they released",
		Long:    historyAbout,
		Example: examplesOf(w, at, historyExamples, ""),
		Args:    noArgs,
		RunE:    withEnv(w, func(ctx context.Context, _ []string) error { return history(ctx, w, f) }),
	}
	f.add(cmd.Flags())
	f.out.add(cmd.Flags())
	cmd.Flags().StringVar(&f.run, "run", "", "list the allocations of the run with this `ID`, in upper or lower case, or of the latest")
	return cmd
}

// history runs the command, from its flags to its report. It writes nothing.
func history(ctx context.Context, w ioStreams, f historyFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.output == "html" {
		return ipam.BadInput(errors.New("--output: history has no format \"html\""), "use "+listOf(print.HistoryFormats()))
	}
	printing, err := f.out.options(w, f.output, false)
	if err != nil {
		return err
	}
	p, err := loadPolicy(ctx, w, f.policy)
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
	found := report.NewHistory(conn.Address, conn.StateNamespace)
	found.Node, found.StateDir, found.Warnings = conn.Node, conn.StateDir, conn.Caveats
	partly, err := readHistory(timed, conn.journals, f.run, &found)
	if err != nil {
		return conn.unread(err)
	}
	return errors.Join(partly, print.WriteHistory(w.stdout, printing, found, conn.called()))
}

// latest is the value of --run that names the last run with a journal.
const latest = "latest"

// readHistory reads all runs, or one. partly is a *report.PartialError if its journal is
// damaged. If there is no run, the latest is none either.
func readHistory(ctx context.Context, journals storedJournals, run string, found *report.History) (partly, err error) {
	if run == latest {
		runs, unread, err := journals.List(ctx)
		if err != nil || len(runs) == 0 {
			found.Warnings = append(found.Warnings, unread...)
			return nil, err
		}
		run = runs[0].ID
	}
	if run != "" {
		past, damage := journals.Read(ctx, run)
		if damage != nil && !errors.Is(damage, journal.ErrDamaged) {
			return nil, damage
		}
		return found.AddJournal(past, damage), nil
	}
	runs, unread, err := journals.List(ctx)
	found.Runs, found.Warnings = append(found.Runs, runs...), append(found.Warnings, unread...)
	return nil, err
}
