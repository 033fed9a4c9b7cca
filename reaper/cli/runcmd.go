package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// runFlags are the flags of the run command.
type runFlags struct {
	clusterFlags
	overrides      overrides
	terminationLog string
	journal        string
	pushURL        string
	all            bool
	remember       bool
	wait           waitFlag
	ignoreLimits   bool
	concurrency    int
}

func newRun(w ioStreams) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Find leaked addresses and, if the policy says so, release them (the default command)",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnv(cmd.Flags(), w.env); err != nil {
				return err
			}
			return reap(cmd.Context(), w, f)
		},
	}
	flags := cmd.Flags()
	f.add(flags)
	f.overrides.add(flags)
	f.wait.add(flags)
	flags.BoolVar(&f.remember, "remember", false, "in a dry run, save the ledger and nothing else, so that grace periods end; a run that releases always saves it")
	flags.BoolVar(&f.all, "all", false, "report allocations in use too, as -o wide does")
	flags.IntVar(&f.concurrency, "concurrency", 32, "number of pools that are written at the same time")
	flags.BoolVar(&f.ignoreLimits, "unsafe-ignore-limits", false, "release even if the policy's limits or an empty cluster refuse it")
	flags.StringVar(&f.journal, "journal", "", "write the journal to this new `FILE` too; see restore")
	flags.StringVar(&f.pushURL, "push-url", "", "push metrics to the Prometheus Pushgateway at this `URL` when the run ends")
	flags.StringVar(&f.terminationLog, "termination-log", "/dev/termination-log", "write a summary of one line to this `FILE` if it exists")
	return cmd
}

// check returns the mistakes in the flags that can be found without a cluster.
func (f runFlags) check() error {
	if f.concurrency < 1 {
		return reaper.BadInput(fmt.Errorf("--concurrency: %d is less than 1", f.concurrency), "")
	}
	if err := f.overrides.check(); err != nil {
		return err
	}
	return f.clusterFlags.check()
}

// reap runs the command, from its flags to its report.
func reap(ctx context.Context, w ioStreams, f runFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	gateway, err := f.gateway()
	if err != nil {
		return err
	}
	p, err := loadPolicy(w, f.policy)
	if err != nil {
		return err
	}
	f.overrides.apply(&p)
	logger := newLogger(w, f.verbose)
	conn, err := connect(ctx, w, f.clusterFlags, !*p.DryRun || f.remember, p, logger)
	if err != nil {
		return err
	}
	journals, closeJournal, err := openJournals(f, conn, *p.DryRun)
	if err != nil {
		return err
	}
	logger.Info("run", "version", buildVersion(), "server", conn.address, "context", conn.context, "dryRun", *p.DryRun)

	o := options(w, f, p, conn, logger)
	o.Journals = journals
	found, runErr := reaper.Run(ctx, o)
	logger.Info("done", "allocations", found.Summary.Entries, "planned", found.Summary.Planned,
		"released", found.Summary.Released, "failed", found.Summary.Failed)
	printErr := report.Write(w.stdout, f.output, f.all, found)
	if err := writeTermination(f.terminationLog, found, exitCode(ctx, runErr), runErr); err != nil {
		logger.Warn("the termination message was not written", "err", err)
	}
	err = errors.Join(runErr, printErr, closeJournal())
	pushMetrics(ctx, gateway, found, err, logger)
	return err
}

// openJournals returns the journals of a run: the journals in the cluster, and the file
// of --journal. A dry run writes to neither, so it creates no file.
func openJournals(f runFlags, conn connection, dryRun bool) (reaper.Journals, func() error, error) {
	if f.journal == "" || dryRun {
		return conn.journals, func() error { return nil }, nil
	}
	if f.journal == dump.Stdin {
		return nil, nil, reaper.BadInput(errors.New("--journal: a run cannot write its journal to stdout"), "give the name of a new file")
	}
	file, err := journal.Create(f.journal)
	switch {
	case errors.Is(err, fs.ErrExist):
		err = fmt.Errorf("--journal: %s exists, and may be the journal of an earlier run", f.journal)
		return nil, nil, reaper.BadInput(err, "give a file that does not exist yet")
	case err != nil:
		return nil, nil, reaper.BadInput(fmt.Errorf("--journal: %w", err), "")
	}
	return journal.Both{file, conn.journals}, file.Close, nil
}

// options returns the options of the run.
func options(w ioStreams, f runFlags, p policy.Policy, conn connection, logger *slog.Logger) reaper.Options {
	o := reaper.Options{
		ID:           newID(),
		Version:      buildVersion(),
		Address:      conn.address,
		Policy:       p,
		Backends:     conn.backends,
		Cluster:      conn.cluster,
		Ledgers:      conn.ledgers,
		Lock:         conn.lock,
		Events:       conn.events,
		ClockSkew:    conn.clockSkew,
		Now:          time.Now,
		Logger:       logger,
		Concurrency:  f.concurrency,
		Timeout:      f.timeout,
		IgnoreLimits: f.ignoreLimits,
		Remember:     f.remember,
		MaxWait:      f.wait.max,
	}
	if f.wait.on {
		o.Sleep = sleep
	}
	if w.terminal {
		o.Progress = func(line string) { fmt.Fprintln(w.stderr, printable.Line(line)) }
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
