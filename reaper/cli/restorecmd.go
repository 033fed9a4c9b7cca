package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/report"
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
			return nil, reaper.BadInput(fmt.Errorf("--only: %q is no address", text), "")
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
		return reaper.BadInput(errors.New("one of --run and --journal is wanted"), "the report of a run says its ID")
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
	conn, err := connect(ctx, w, f.clusterFlags, !f.dryRun, p, logger)
	if err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	journal, damage := readJournal(timed, w, f, conn)
	switch {
	case errors.Is(damage, reaper.ErrNoJournal):
		return reaper.BadInput(damage, "the report of a run says its ID")
	case damage != nil && !errors.Is(damage, reaper.ErrJournalDamaged):
		return damage
	}
	if err := checkOnly(only, journal); err != nil {
		return errors.Join(err, damage)
	}
	restored, err := reaper.Restore(timed, reaper.RestoreOptions{
		ID: newID(), Version: buildVersion(), Address: conn.address,
		Journal: journal, Damage: damage, Only: only, DryRun: f.dryRun,
		Backends: conn.backends, Cluster: conn.cluster, Lock: conn.lock,
		Now: time.Now, Logger: logger,
	})
	return errors.Join(err, report.WriteRestore(w.stdout, f.output, restored))
}

// readJournal reads it from where the flags say.
func readJournal(ctx context.Context, w ioStreams, f restoreFlags, conn connection) (reaper.Journal, error) {
	if f.journal != "" {
		text, name, err := dump.Open(ctx, w.stdin, f.journal)
		if err != nil {
			return reaper.Journal{}, reaper.BadInput(err, "")
		}
		defer text.Close()
		return journal.Read(name, text)
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
	return reaper.BadInput(fmt.Errorf("--only: the journal of run %s does not have %s", journal.Run.ID, strings.Join(missing, ", ")),
		"leave out --only and give --dry-run to see what it has")
}
