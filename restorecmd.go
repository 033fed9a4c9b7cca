package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper"
)

const restoreAbout = `restore puts back what a run released: in pools, reservations, blocks and handles,
each on the condition that its place is still free. What was given to somebody else
meanwhile is not touched, and an address that another pod shows is not put back.

A run says its ID in its report. What it released is in ConfigMaps of the reaper's
namespace, and in the file that was given to it by --journal. What is put back is as
leaked as it was before: unless its pod is there, or a rule of the policy holds it,
the next run releases it again when the grace period is over.
`

// restoreFlags are the flags of the restore command.
type restoreFlags struct {
	clusterFlags
	run     string
	journal string
	only    []string
	dryRun  bool
}

func newRestore(w ioStreams) *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:   "restore --run ID | --journal FILE",
		Short: "Put back what a run released",
		Long:  restoreAbout,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnv(cmd.Flags(), w.env); err != nil {
				return err
			}
			return restore(cmd.Context(), w, f)
		},
	}
	flags := cmd.Flags()
	f.add(flags)
	flags.StringVar(&f.run, "run", "", "`ID` of the run whose journal is in the cluster")
	flags.StringVar(&f.journal, "journal", "", "`FILE` that the run was given as --journal; - is stdin")
	flags.StringSliceVar(&f.only, "only", nil, "put back these addresses only: `IP`, several with commas or by repeating the flag")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would be put back")
	return cmd
}

// addresses returns what --only names.
func (f restoreFlags) addresses() ([]netip.Addr, error) {
	var only []netip.Addr
	for _, text := range f.only {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil, &usageError{fmt.Errorf("--only: %q is no address", text), ""}
		}
		only = append(only, ip.Unmap())
	}
	return only, nil
}

// restore is one restoration, from flags to report.
func restore(ctx context.Context, w ioStreams, f restoreFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if (f.run == "") == (f.journal == "") {
		return &usageError{errors.New("one of --run and --journal is wanted"), "the report of a run says its ID"}
	}
	only, err := f.addresses()
	if err != nil {
		return err
	}
	p, err := loadPolicy(w, f.policy)
	if err != nil {
		return err
	}
	logger := newLogger(w, f.verbose)
	conn, err := connect(f.clusterFlags, !f.dryRun, p, logger, w.env)
	if err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	journal, damage := readJournal(timed, w, f, conn)
	switch {
	case errors.Is(damage, reaper.ErrNoJournal):
		return &usageError{damage, "the report of a run says its ID"}
	case damage != nil && !errors.Is(damage, reaper.ErrJournalDamaged):
		return damage
	}
	if err := checkOnly(only, journal); err != nil {
		return errors.Join(err, damage)
	}
	report, err := reaper.Restore(timed, reaper.RestoreOptions{
		ID: newID(), Version: buildVersion(), Address: conn.address,
		Journal: journal, Damage: damage, Only: only, DryRun: f.dryRun,
		Backends: conn.backends, Cluster: conn.cluster, Lock: conn.lock,
		Now: time.Now, Logger: logger,
	})
	return errors.Join(err, showRestored(w, f.output, report))
}

// readJournal reads it from where the flags say.
func readJournal(ctx context.Context, w ioStreams, f restoreFlags, conn connection) (reaper.Journal, error) {
	if f.journal != "" {
		return readJournalFile(ctx, w.stdin, f.journal)
	}
	return conn.journals.Read(ctx, f.run)
}

// checkOnly finds the addresses that the journal does not have.
func checkOnly(only []netip.Addr, journal reaper.Journal) error {
	var missing []string
	for _, ip := range only {
		has := func(r reaper.Record) bool { return r.IP == ip.String() }
		if !slices.ContainsFunc(journal.Records, has) {
			missing = append(missing, ip.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &usageError{
		fmt.Errorf("--only: the journal of run %s does not have %s", journal.Run.ID, strings.Join(missing, ", ")),
		"leave out --only and give --dry-run to see what it has",
	}
}

// showRestored prints the report.
func showRestored(w ioStreams, format string, r reaper.RestoreReport) error {
	return formats[format](w.stdout, reportView{
		value:      r,
		tables:     func(bool) []table { return restoreTables(r) },
		warnings:   r.Warnings,
		conclusion: restoreConclusion(r),
	})
}

// restoreTables are the report as people read it.
func restoreTables(r reaper.RestoreReport) []table {
	t := table{heading: []string{"IP", "BACKEND", "POOL", "POD", "OUTCOME", "NOTE"}}
	for _, e := range r.Entries {
		t.rows = append(t.rows, []string{
			nameOf(e.IP, e.Key), e.Backend, e.Pool, podOf(e.Owner), string(e.Outcome), e.Error,
		})
	}
	return []table{t}
}

// restoreConclusion is the report in one sentence.
func restoreConclusion(r reaper.RestoreReport) string {
	s := r.Summary
	of := strconv.Itoa(s.Records) + " entries"
	if r.Journal.ID != "" { // none of a damaged journal
		of += " of run " + r.Journal.ID
	}
	if r.Run.DryRun {
		return fmt.Sprintf("dry run: %d of %s would be put back, if they are not there, nothing was written", s.Planned, of)
	}
	return fmt.Sprintf("put back %d of %s (%d were there already, %d are taken, %d failed)",
		s.Restored, of, s.Present, s.Taken, s.Failed)
}
