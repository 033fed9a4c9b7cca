package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const restoreAbout = `restore puts back the allocations that a run released, each only if its place is
still free. It does not touch an address that was allocated again in the meantime,
nor put back an address that another pod shows.

The report of a run has the ID of the run. The journal of a run is in ConfigMaps of
the state namespace, and in the file of --journal. A restored allocation is leaked
again. A run holds it for the policy's journal.restoreHold. After that, unless its pod
exists or a rule of the policy holds it, a run releases it when its grace period is over.
`

// restoreFlags are the flags of the restore command.
type restoreFlags struct {
	commandFlags
	out     outputFlags
	run     string
	journal string
	only    []string
	dryRun  bool
}

func newRestore(w ioStreams, at target) *cobra.Command {
	var f restoreFlags
	f.target = at
	cmd := &cobra.Command{
		Use:   "restore --run ID | --journal FILE",
		Short: "Put back what a run released",
		Long:  restoreAbout,
		Args:  noArgs,
		RunE:  withEnv(w, func(ctx context.Context, _ []string) error { return restore(ctx, w, f) }),
	}
	flags := cmd.Flags()
	f.add(flags)
	f.out.add(flags)
	flags.Lookup("policy").Usage = "policy `FILE`, for the settings of backends; by default as a run takes it"
	flags.Lookup("verbose").Usage = "log every record"
	flags.StringVar(&f.run, "run", "", "`ID` of the run whose journal is in the cluster, in any case")
	flags.StringVar(&f.journal, "journal", "", "`FILE` that the run wrote with --journal; - is stdin")
	flags.StringSliceVar(&f.only, "only", nil, "put back this `IP` only; for more, use commas or repeat the flag")
	flags.BoolVar(&f.dryRun, "dry-run", false, "report what would be put back, and put back nothing")
	return cmd
}

// addresses returns the addresses of --only.
func (f restoreFlags) addresses() ([]netip.Addr, error) {
	var only []netip.Addr
	for _, text := range f.only {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil, ipam.BadInput(fmt.Errorf("--only: %q is not an IP address", text), "")
		}
		only = append(only, ip.Unmap())
	}
	return only, nil
}

// restore runs the command, from its flags to its report.
func restore(ctx context.Context, w ioStreams, f restoreFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if (f.run == "") == (f.journal == "") {
		return ipam.BadInput(errors.New("give either --run or --journal"), "the report of a run has its ID, and history lists the runs")
	}
	printing, err := f.out.options(w, f.output, false)
	if err != nil {
		return err
	}
	only, err := f.addresses()
	if err != nil {
		return err
	}
	p, err := loadPolicy(ctx, w, f.policy)
	if err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	var past journal.Journal
	var damage error     // then what could be read is restored
	if f.journal != "" { // it needs no server
		if past, damage = readJournal(timed, w, f.journal); damage != nil && !errors.Is(damage, journal.ErrDamaged) {
			return damage
		}
	}
	conn, err := f.connect(timed, w, !f.dryRun, p, newLogger(w, f.logFormat, f.verbose))
	if err != nil {
		return err
	}
	defer conn.close()
	if f.run != "" {
		if past, damage = conn.journals.Read(timed, f.run); damage != nil && !errors.Is(damage, journal.ErrDamaged) {
			return conn.unread(damage)
		}
	}
	if err := checkOnly(only, past); err != nil {
		return errors.Join(err, damage)
	}
	restored, err := reaper.Restore(timed, reaper.RestoreOptions{
		ID: conn.ID, Version: conn.Version, Address: conn.Address, Node: conn.Node, StateDir: conn.StateDir,
		Journal: past, Damage: damage, Only: only, DryRun: f.dryRun,
		Backends: conn.Backends, Cluster: conn.Cluster, Ledgers: conn.Ledgers, Lock: conn.Lock,
		Now: conn.Now, Logger: conn.Logger,
	})
	by := conn.called()
	restored.Run.Caveats, restored.Run.Context, restored.Run.Policy = by.Caveats, by.Context, by.Policy
	return errors.Join(err, print.WriteRestore(w.stdout, printing, restored))
}

// readJournal reads the journal from a file.
func readJournal(ctx context.Context, w ioStreams, file string) (journal.Journal, error) {
	text, name, err := dump.Open(ctx, w.stdin, file)
	if err != nil {
		return journal.Journal{}, ipam.BadInput(err, "")
	}
	defer text.Close()
	past, err := journal.Read(name, text)
	if errors.Is(err, journal.ErrNone) {
		err = ipam.BadInput(err, "")
	}
	return past, err
}

// checkOnly returns an error if the journal does not have all addresses of --only.
func checkOnly(only []netip.Addr, journal journal.Journal) error {
	var missing []string
	for _, ip := range only {
		has := func(r ipam.Record) bool { return r.IP == ip.String() }
		if !slices.ContainsFunc(journal.Records, has) {
			missing = append(missing, ip.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return ipam.BadInput(fmt.Errorf("--only: the journal of run %s does not have %s", journal.Run.ID, strings.Join(missing, ", ")),
		"to list its addresses, run it with --dry-run and without --only")
}
