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
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// runFlags are the flags of the run command.
type runFlags struct {
	clusterFlags
	terminationLog string
	journal        string
	pushURL        string
	dryRun         bool
	all            bool
	wait           bool
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
			return reap(cmd.Context(), w, f, cmd.Flags().Changed("dry-run"))
		},
	}
	flags := cmd.Flags()
	f.add(flags)
	flags.BoolVar(&f.dryRun, "dry-run", true, "only say what would be released; overrides the policy")
	flags.BoolVar(&f.all, "all", false, "report the entries that are in use too, as -o wide does")
	flags.BoolVar(&f.wait, "wait", false, "sit out the grace periods of what is suspected, and judge again; --timeout does not count the waiting")
	flags.IntVar(&f.concurrency, "concurrency", 32, "stored objects that are released at the same time")
	flags.BoolVar(&f.ignoreLimits, "unsafe-ignore-limits", false, "release even what the policy's limits or an empty cluster forbid")
	flags.StringVar(&f.journal, "journal", "", "write what is about to be released to this new `FILE` too; see restore")
	flags.StringVar(&f.pushURL, "push-url", "", "push metrics to the Prometheus Pushgateway at this `URL` when the run is over")
	flags.StringVar(&f.terminationLog, "termination-log", "/dev/termination-log", "write a one-line summary to this `FILE` if it exists")
	return cmd
}

// check finds the mistakes that need nobody to be asked.
func (f runFlags) check() error {
	if f.concurrency < 1 {
		return reaper.BadInput(fmt.Errorf("--concurrency: %d is less than 1", f.concurrency), "")
	}
	return f.clusterFlags.check()
}

// reap is one run, from flags to report.
func reap(ctx context.Context, w ioStreams, f runFlags, dryRunGiven bool) error {
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
	if dryRunGiven {
		p.DryRun = &f.dryRun
	}
	logger := newLogger(w, f.verbose)
	conn, err := connect(f.clusterFlags, !*p.DryRun, p, logger, w.env)
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
		logger.Warn("no termination message", "err", err)
	}
	err = errors.Join(runErr, printErr, closeJournal())
	pushMetrics(ctx, gateway, found, err, logger)
	return err
}

// openJournals returns where a run writes down what it releases: the cluster, and
// a file where one is asked for. A dry run writes neither.
func openJournals(f runFlags, conn connection, dryRun bool) (reaper.Journals, func() error, error) {
	if f.journal == "" || dryRun {
		return conn.journals, func() error { return nil }, nil
	}
	if f.journal == dump.Stdin {
		return nil, nil, reaper.BadInput(errors.New("--journal: the journal has to be a file"), "")
	}
	file, err := journal.Create(f.journal)
	switch {
	case errors.Is(err, fs.ErrExist):
		err = fmt.Errorf("--journal: %s is there already, and may be what an earlier run can be undone by", f.journal)
		return nil, nil, reaper.BadInput(err, "give a file that does not exist yet")
	case err != nil:
		return nil, nil, reaper.BadInput(fmt.Errorf("--journal: %w", err), "")
	}
	return journal.Both{file, conn.journals}, file.Close, nil
}

// options puts a run together.
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
	}
	if f.wait {
		o.Sleep = sleep
	}
	if w.terminal {
		o.Progress = func(line string) { fmt.Fprintln(w.stderr, line) }
	}
	return o
}

// sleep waits, unless the context ends before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// newID names a run.
func newID() string { return time.Now().UTC().Format("20060102-150405-") + rand.Text()[:6] }
