package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

// runFlags are the flags of the run command.
type runFlags struct {
	commandFlags
	overrides      overrides
	out            outputFlags
	filters        filterFlags
	terminationLog string
	journal        string
	pushURL        string
	metricsFile    string
	every          time.Duration
	all            bool
	remember       bool
	wait           waitFlag
	ignoreLimits   bool
}

func newRun(w ioStreams, at target) *cobra.Command {
	f := runFlags{commandFlags: commandFlags{target: at, concurrency: defaultConcurrency}}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Find leaked addresses and, if the policy says so, release them (the default command)",
		Args:  noArgs,
		RunE:  withEnv(w, func(ctx context.Context, _ []string) error { return f.turns(ctx, w) }),
	}
	flags := cmd.Flags()
	f.add(flags)
	f.overrides.add(flags)
	f.out.add(flags)
	f.filters.add(flags, at.scope())
	f.wait.add(flags)
	flags.BoolVar(&f.remember, "remember", false, "in a dry run, save the ledger and nothing else, so that grace periods end; a run that releases always saves it")
	flags.BoolVar(&f.all, "all", false, "report every allocation, also those in use, and fold none")
	if at.scope() == plugin.Cluster {
		flags.IntVar(&f.concurrency, "concurrency", defaultConcurrency, "most requests to the stores and the API server at the same time")
	} else {
		f.addEvery(flags)
	}
	flags.BoolVar(&f.ignoreLimits, "unsafe-ignore-limits", false, "release even if the policy's limits or an empty cluster refuse it")
	flags.StringVar(&f.journal, "journal", "", "write the journal to this new `FILE` too; see restore")
	flags.StringVar(&f.pushURL, "push-url", "", "push metrics to the Prometheus Pushgateway at this `URL` when the run ends")
	flags.StringVar(&f.metricsFile, "metrics-file", "", "write metrics to this `FILE` when the run ends, for the textfile collector of node_exporter")
	flags.StringVar(&f.terminationLog, "termination-log", "/dev/termination-log", "write a summary of one line to this `FILE` if it exists")
	return cmd
}

// check returns the mistakes in the flags that can be found without a cluster.
func (f runFlags) check() error {
	if f.concurrency < 1 {
		return ipam.BadInput(fmt.Errorf("--concurrency: %d is less than 1", f.concurrency), "")
	}
	if err := f.checkEvery(); err != nil {
		return err
	}
	if err := f.overrides.check(); err != nil {
		return err
	}
	return f.commandFlags.check()
}

// reap runs the command, from its flags to its report.
func reap(ctx context.Context, w ioStreams, f runFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	printing, err := f.out.options(w, f.output, f.all)
	if err != nil {
		return err
	}
	selection, err := f.filters.selection(plugin.Of(w.backends, f.target.scope()))
	if err != nil {
		return err
	}
	figures, err := f.metricsTo(selection)
	if err != nil {
		return err
	}
	logger, started := newLogger(w, f.commandFlags), time.Now()
	on, err := f.open(ctx, w, logger)
	if err != nil {
		figures.tellEarly(ctx, f.target.name(w), started, err, logger)
		return err
	}
	defer on.conn.close()
	logger.Info("run", "version", buildVersion(), "server", on.conn.address, "context", on.conn.context, "dryRun", *on.policy.DryRun)

	o := options(w, f, on.policy, on.conn, logger)
	o.Elsewhere = elsewhere(w, f.target.scope(), on.policy)
	o.Journals, o.Selection, o.Brief = on.journals, selection, printing.Brief()
	found, runErr := reaper.Run(ctx, o)
	found.Warnings = append(on.conn.warnings, found.Warnings...)
	logger.Info("done", "allocations", found.Summary.Entries, "planned", found.Summary.Planned,
		"released", found.Summary.Released, "failed", found.Summary.Failed)
	found.Result.ExitCode, found.Result.Error = exitCode(ctx, runErr), oneLine(told(ctx, runErr))
	printErr := print.Write(w.stdout, printing, found)
	if err := writeTermination(f.terminationLog, found, runErr); err != nil {
		logger.Warn("the termination message was not written", "err", err)
	}
	err = errors.Join(runErr, printErr, on.closeJournal())
	figures.tell(ctx, found, err, logger)
	return err
}

// An opened is what a run opens before it lists anything.
type opened struct {
	policy       policy.Policy // with the flags that override it
	conn         connection
	journals     journal.Store
	closeJournal func() error
}

// open opens what the run needs. If it fails, nothing stays open.
func (f runFlags) open(ctx context.Context, w ioStreams, logger *slog.Logger) (on opened, err error) {
	if on.policy, err = loadPolicy(w, f.policy); err != nil {
		return on, err
	}
	f.overrides.apply(&on.policy)
	dryRun := *on.policy.DryRun
	if err = f.checkJournal(dryRun); err != nil {
		return on, err
	}
	if on.conn, err = f.connect(ctx, w, !dryRun || f.remember, on.policy, logger); err != nil {
		return on, err
	}
	if on.journals, on.closeJournal, err = openJournals(f, on.conn, dryRun); err != nil {
		on.conn.close()
	}
	return on, err
}

// checkJournal returns an error if the file of --journal cannot be a new journal. It needs
// no server, and creates nothing.
func (f runFlags) checkJournal(dryRun bool) error {
	if f.journal == "" || dryRun {
		return nil
	}
	if f.journal == dump.Stdin {
		return ipam.BadInput(errors.New("--journal: a run cannot write its journal to stdout"), "give the name of a new file")
	}
	if _, err := os.Lstat(f.journal); err == nil {
		return f.journalExists()
	}
	folder := filepath.Dir(f.journal)
	info, err := os.Stat(folder)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", folder)
	}
	if err != nil {
		return ipam.BadInput(fmt.Errorf("--journal: %w", err), "give a file in a directory that exists")
	}
	return nil
}

func (f runFlags) journalExists() error {
	err := fmt.Errorf("--journal: %s exists, and may be the journal of an earlier run", f.journal)
	return ipam.BadInput(err, "give a file that does not exist yet")
}

// openJournals returns the journals of a run: the journals in the cluster, and the file
// of --journal. A dry run writes to neither, so it creates no file.
func openJournals(f runFlags, conn connection, dryRun bool) (journal.Store, func() error, error) {
	if f.journal == "" || dryRun {
		return conn.journals, func() error { return nil }, nil
	}
	file, err := journal.Create(f.journal, conn.journals)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, nil, f.journalExists()
	case err != nil:
		return nil, nil, ipam.BadInput(fmt.Errorf("--journal: %w", err), "")
	}
	return file, file.Close, nil
}

// options returns the options of the run.
func options(w ioStreams, f runFlags, p policy.Policy, conn connection, logger *slog.Logger) reaper.Options {
	o := reaper.Options{
		ID:             newID(),
		Version:        buildVersion(),
		Address:        conn.address,
		Program:        w.name(),
		Kubeconfig:     kubeconfigOf(f.flags),
		By:             conn.by,
		Context:        conn.context,
		StateNamespace: conn.stateNamespace,
		Node:           conn.node,
		StateDir:       conn.stateDir,
		PolicyFile:     f.policy,
		Policy:         p,
		Backends:       conn.backends,
		Protectors:     plugin.Protectors(w.backends),
		Cluster:        conn.cluster,
		Ledgers:        conn.ledgers,
		Lock:           conn.lock,
		Events:         conn.events,
		Access:         conn.access,
		ClockSkew:      conn.clockSkew,
		Now:            time.Now,
		Logger:         logger,
		Timeout:        f.timeout,
		IgnoreLimits:   f.ignoreLimits,
		Remember:       f.remember,
		MaxWait:        f.wait.max,
	}
	if f.wait.on {
		o.Sleep = sleep
	}
	if w.terminal && !f.out.quiet {
		o.Progress = w.progress
	}
	return o
}

// sleep waits for d. It returns an error if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// newID returns an ID for a run, which begins with its time.
func newID() string { return time.Now().UTC().Format("20060102-150405-") + rand.Text()[:6] }
