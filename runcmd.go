package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// runFlags are the flags of the run command.
type runFlags struct {
	policy         string
	kubeconfig     string
	context        string
	namespace      string
	output         string
	terminationLog string
	dryRun         bool
	all            bool
	verbose        bool
	ignoreLimits   bool
	timeout        time.Duration
	concurrency    int
}

func newRun(w world) *cobra.Command {
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
	flags.StringVar(&f.policy, "policy", "", "policy `FILE`; without one, a dry run with the defaults")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `FILE`; by default the pod's service account, then KUBECONFIG, then ~/.kube/config")
	flags.StringVar(&f.context, "context", "", "kubeconfig context; outside of a cluster, nothing is released without it")
	flags.StringVar(&f.namespace, "namespace", "", "namespace of the ledger; by default that of the pod or of the context")
	flags.BoolVar(&f.dryRun, "dry-run", true, "only say what would be released; overrides the policy")
	flags.StringVarP(&f.output, "output", "o", "table", "report format: table, wide, json, yaml or markdown")
	flags.BoolVar(&f.all, "all", false, "report the entries that are in use too, as -o wide does")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "give up after this time")
	flags.IntVar(&f.concurrency, "concurrency", 32, "stored objects that are released at the same time")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log every decision")
	flags.BoolVar(&f.ignoreLimits, "unsafe-ignore-limits", false, "release even what the policy's limits or an empty cluster forbid")
	flags.StringVar(&f.terminationLog, "termination-log", "/dev/termination-log", "write a one-line summary to this `FILE` if it exists")
	return cmd
}

// check finds the mistakes that need nobody to be asked.
func (f runFlags) check() error {
	switch {
	case f.concurrency < 1:
		return &usageError{fmt.Errorf("--concurrency: %d is less than 1", f.concurrency), ""}
	case f.timeout <= 0:
		return &usageError{fmt.Errorf("--timeout: %v is not a time to wait", f.timeout), ""}
	}
	return checkOutput(f.output)
}

// reap is one run, from flags to report.
func reap(ctx context.Context, w world, f runFlags, dryRunGiven bool) error {
	if err := f.check(); err != nil {
		return err
	}
	p, err := loadPolicy(f.policy)
	if err != nil {
		return err
	}
	if dryRunGiven {
		p.DryRun = &f.dryRun
	}
	logger := newLogger(w, f.verbose)
	klog.SetSlogLogger(logger)
	conn, err := connect(f, p, w.env)
	if err != nil {
		return err
	}
	logger.Info("run", "version", buildVersion(), "server", conn.address, "context", conn.context, "dryRun", *p.DryRun)

	timed, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	report, runErr := reaper.Run(timed, options(w, f, p, conn, logger))
	logger.Info("done", "reservations", report.Summary.Reservations, "planned", report.Summary.Planned,
		"released", report.Summary.Released, "failed", report.Summary.Failed)
	printErr := show(w.stdout, f.output, f.all, report)
	if err := writeTermination(f.terminationLog, report, exitCode(ctx, runErr), runErr); err != nil {
		logger.Warn("no termination message", "err", err)
	}
	return errors.Join(runErr, printErr)
}

// options puts a run together.
func options(w world, f runFlags, p policy.Policy, conn connection, logger *slog.Logger) reaper.Options {
	o := reaper.Options{
		ID:           newID(),
		Version:      buildVersion(),
		Address:      conn.address,
		Policy:       p,
		Backends:     conn.backends,
		Cluster:      conn.cluster,
		Ledgers:      conn.ledgers,
		Now:          time.Now,
		Logger:       logger,
		Concurrency:  f.concurrency,
		IgnoreLimits: f.ignoreLimits,
	}
	if w.terminal {
		o.Progress = func(line string) { fmt.Fprintln(w.stderr, line) }
	}
	return o
}

// newID names a run.
func newID() string { return time.Now().UTC().Format("20060102-150405-") + rand.Text()[:6] }

// newLogger logs to stderr: for people on a terminal, for machines elsewhere.
func newLogger(w world, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if w.terminal {
		level = slog.LevelWarn // progress lines say the rest
	}
	if verbose {
		level = slog.LevelDebug
	}
	options := &slog.HandlerOptions{Level: level}
	if w.terminal {
		return slog.New(slog.NewTextHandler(w.stderr, options))
	}
	return slog.New(slog.NewJSONHandler(w.stderr, options))
}
