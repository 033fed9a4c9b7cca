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
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/report"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const restoreAbout = `restore puts back the allocations that a run released, each only if its place is
still free. It leaves alone an address that was allocated again in the meantime,
and one that another pod shows. A pod that has another address by now gets the
old one only if an earlier sandbox may still run. It is a dry run, unless
--dry-run=false.

The report of a run has its ID. What is put back is leaked again: the next runs
hold it for the journal.restoreHold of the policy. After that, they release it
when its grace period is over, unless its pod exists or a rule holds it.
`

const restoreExamples = `  # Which runs can be undone?
  %[1]s history%[2]s

  # What would be put back? Then put it back
  %[1]s restore%[2]s --run ID
  %[1]s restore%[2]s --run ID --dry-run=false

  # One address only
  %[1]s restore%[2]s --run ID --ip 10.0.0.7 --dry-run=false`

// restoreFlags are the flags of the restore command.
type restoreFlags struct {
	commandFlags
	out     outputFlags
	run     string
	journal string
	ips     []string
	pools   []string
	nodes   []string
	dryRun  bool

	acceptCluster bool
	acceptSecond  bool
}

func newRestore(w ioStreams, at target) *cobra.Command {
	var f restoreFlags
	f.target = at
	cmd := &cobra.Command{
		Use:     "restore --run ID | --journal FILE",
		Short:   "Put back what a run released",
		Long:    restoreAbout,
		Example: examplesOf(w, at, restoreExamples, ""),
		Args:    noArgs,
		RunE:    withEnv(w, func(ctx context.Context, _ []string) error { return restore(ctx, w, f) }),
	}
	flags := cmd.Flags()
	f.add(flags)
	f.out.add(flags)
	flags.Lookup("policy").Usage = "take the settings of backends from this policy `FILE`; by default, as a run does"
	flags.Lookup("verbose").Usage = "log every record"
	flags.StringVar(&f.run, "run", "", "put back what the run with this `ID` released, in upper or lower case; latest is the last one that has a journal")
	flags.StringVar(&f.journal, "journal", "", "put back what is in this `FILE`, which history --run ID -o json has printed; - is stdin")
	flags.StringSliceVar(&f.ips, "ip", nil, "put back only this `ADDRESS`, with what the same CNI ADD allocated; repeatable")
	flags.StringSliceVar(&f.pools, "pool", nil, "put back only this `POOL`: a pool, with or without its namespace, a network, or a CIDR around pools; repeatable")
	if at.scope() == plugin.Cluster {
		flags.StringSliceVar(&f.nodes, "node", nil, "put back only pods of this `NODE`; repeatable")
		flags.BoolVar(&f.acceptSecond, "accept-second-address", false, "put an address back even if its pod has another one by now, or if a pool that cannot be read may have it")
	}
	flags.BoolVar(&f.dryRun, "dry-run", true, "only show what would be put back; --dry-run=false puts it back")
	flags.BoolVar(&f.acceptCluster, "accept-other-cluster", false, "put back what a run on another cluster released")
	return cmd
}

// restore runs the command, from its flags to its report.
func restore(ctx context.Context, w ioStreams, f restoreFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if (f.run == "") == (f.journal == "") {
		return ipam.BadInput(errors.New("restore needs either --run or --journal"), "history lists the runs, and the report of a run has its ID")
	}
	f.dryRun = f.dryRun || !typed(f.flags.Lookup("dry-run")) // a variable is meant for runs
	printing, err := f.out.options(w, f.output, false)
	if err != nil {
		return err
	}
	if err := checkNames(f.flags, map[string][]string{"ip": f.ips, "pool": f.pools, "node": f.nodes}); err != nil {
		return err
	}
	addresses, err := addressesOf(f.ips)
	if err != nil {
		return err
	}
	p, err := loadPolicy(ctx, w, f.policyFile)
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
		if past, damage = readRun(timed, conn.journals, f.run); damage != nil && !errors.Is(damage, journal.ErrDamaged) {
			return conn.unread(damage)
		}
	}
	if err := checkAddresses(addresses, past); err != nil {
		return errors.Join(err, damage)
	}
	uid := ""
	if conn.ClusterUID != nil && past.Run.ClusterUID != "" {
		uid = conn.ClusterUID(timed)
	}
	restored, err := reaper.Restore(timed, reaper.RestoreOptions{
		ID: conn.ID,
		Origin: report.Origin{
			Version:  conn.Version,
			Cluster:  conn.Origin.Cluster,
			By:       conn.By,
			Node:     conn.Node,
			StateDir: conn.StateDir,
			Context:  conn.Context,
		},
		ClusterUID: uid, AcceptOtherCluster: f.acceptCluster, AcceptSecondAddress: f.acceptSecond,
		Journal: past, Damage: damage, DryRun: f.dryRun, Selection: judge.Selection{Addresses: addresses, Pools: f.pools, Nodes: f.nodes},
		Backends: conn.Backends, Protectors: conn.Protectors, Shares: plugin.Shares(w.backends), Cluster: conn.Cluster, Ledgers: conn.Ledgers, Lock: conn.Lock,
		Ending: ending(ctx), Now: conn.Now, ClockSkew: conn.ClockSkew, Logger: conn.Logger,
	})
	if isMistake(err) {
		return err
	}
	by := conn.runInfo()
	restored.Run.Caveats, restored.Run.Policy = by.Caveats, by.Policy
	return errors.Join(err, print.WriteRestore(w.stdout, printing, restored))
}

// readJournal reads the journal from a file.
func readJournal(ctx context.Context, w ioStreams, file string) (journal.Journal, error) {
	text, name, err := dump.Open(ctx, w.stdin, file)
	if err != nil {
		return journal.Journal{}, ipam.BadInput(err, "")
	}
	defer text.Close()
	return journal.Read(name, text)
}

// readRun reads the journal of a run in the state, or the latest one.
func readRun(ctx context.Context, journals storedJournals, run string) (journal.Journal, error) {
	if run == latest {
		runs, _, err := journals.List(ctx)
		if err != nil {
			return journal.Journal{}, err
		}
		if len(runs) > 0 {
			run = runs[0].ID
		}
	}
	return journals.Read(ctx, run)
}

// checkAddresses returns an error if the journal does not have all addresses of --ip.
func checkAddresses(addresses []netip.Addr, journal journal.Journal) error {
	var missing []string
	for _, ip := range addresses {
		if !slices.ContainsFunc(journal.Records, func(r ipam.Record) bool { return r.IP == ip.String() }) {
			missing = append(missing, ip.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return ipam.BadInput(fmt.Errorf("--ip: the journal of run %s does not have %s", journal.Run.ID, strings.Join(missing, ", ")),
		"list its addresses without --ip and --dry-run=false")
}
