package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const runAbout = `run compares the IPAM stores with the pods of the cluster, and reports each
leaked address with the reason why it is kept or released. It is a dry run,
unless --dry-run=false or, in a pod, the FILE of --policy says otherwise.

An address is released only if it has been leaked for the grace period, and a
second look right before the write finds the same. A run writes a journal first,
so restore can put back what it released.
`

const runExamples = `  # What has leaked, and what would be released? This writes nothing.
  %[1]s run --context prod

  # The same for one pool, for one address, or for one namespace on one node
  %[1]s run --context prod --pool 10.112.0.192/26
  %[1]s run --context prod --ip 10.112.0.199
  %[1]s run --context prod --node worker-17 -n checkout

  # What if the grace period were shorter?
  %[1]s run --context prod --grace-period 1m

  # Release what is due, and what becomes due in the next two minutes
  %[1]s run --context prod --dry-run=false --wait=2m

  # A page with a map of each pool, and every entry for jq
  %[1]s run --context prod -o html > report.html
  %[1]s run --context prod -o json --all | jq .entries`

// runFlags are the flags of the run command.
type runFlags struct {
	commandFlags
	overrides      overrides
	out            outputFlags
	filters        filterFlags
	terminationLog string
	pushURL        string
	metricsFile    string
	every          time.Duration
	all            bool
	remember       bool
	wait           time.Duration // for grace periods, in all; 0 for not at all
	ignoreLimits   []string
	acceptStore    bool
}

func newRun(w ioStreams, at target) *cobra.Command {
	f := runFlags{commandFlags: commandFlags{target: at}}
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Find leaked addresses, and release them if told to (the default)",
		Long:    runAbout,
		Example: fmt.Sprintf(runExamples, w.name()),
		Args:    noArgs,
		RunE: withEnv(w, func(ctx context.Context, _ []string) error {
			if f.every == 0 {
				return reap(ctx, w, f)
			}
			return repeat(ctx, w, f.every, func(ctx context.Context) error { return reap(ctx, w, f) })
		}),
	}
	flags := cmd.Flags()
	f.add(flags)
	f.overrides.add(flags)
	f.out.add(flags)
	f.filters.add(flags, at.scope())
	flags.DurationVar(&f.wait, "wait", 0, "wait for grace periods to end, `DURATION` at most, and run again; --timeout does not count that")
	flags.Lookup("wait").NoOptDefVal = "24h"
	flags.BoolVar(&f.remember, "remember", false, "in a dry run, persist first-seen times so that grace periods can elapse; a run that releases always does")
	flags.BoolVar(&f.all, "all", false, "list every allocation, even those in use, and fold none")
	if at.scope() == plugin.Cluster {
		flags.IntVar(&f.concurrency, "concurrency", defaultConcurrency, "send at most this `NUMBER` of requests to the stores and the API server at the same time")
		flags.BoolVar(&f.acceptStore, "accept-new-store", false, "release from a store outside the API server, such as Calico's etcd, even if it is not the store that earlier runs used")
	} else {
		flags.DurationVar(&f.every, "every", 0, "run again this `DURATION`, and up to a tenth more, after each run, until the program is stopped; by default, run once")
	}
	flags.StringSliceVar(&f.ignoreLimits, "unsafe-ignore-limit", nil, "release even if this `LIMIT` refuses the plan: "+listOf(judge.LimitNames())+"; repeatable")
	flags.StringVar(&f.pushURL, "push-url", "", "push metrics to the Pushgateway at this `URL` when the run ends")
	flags.StringVar(&f.metricsFile, "metrics-file", "", "write metrics to this `FILE` when the run ends, for node_exporter's textfile collector")
	flags.StringVar(&f.terminationLog, "termination-log", "/dev/termination-log", "write a one-line summary to this `FILE` if it exists")
	return cmd
}

// check returns the mistakes in the flags that can be found without a cluster.
func (f runFlags) check() error {
	switch {
	case f.concurrency < 1:
		return ipam.BadInput(fmt.Errorf("--concurrency: %d is less than 1", f.concurrency), "")
	case f.every < 0:
		return ipam.BadInput(fmt.Errorf("--every: %v is negative", f.every), "give one such as 15m")
	case f.wait < 0:
		return ipam.BadInput(fmt.Errorf("--wait: %v is negative", f.wait), "give one such as 2m")
	case f.every > 0 && f.wait > 0:
		return ipam.BadInput(errors.New("--every and --wait contradict each other"), "with --every, the next run releases what is due then")
	case f.flags.Changed("dry-run") && !f.overrides.dryRun && f.remember:
		return ipam.BadInput(errors.New("--dry-run=false and --remember contradict each other: a run that releases always saves the ledger"),
			"leave out --dry-run=false to release nothing, or --remember to release")
	}
	for _, name := range []string{"policy", "kubeconfig", "runtime-config"} {
		if file := f.flags.Lookup(name); f.every > 0 && file != nil && readOnce(file.Value.String()) {
			return ipam.BadInput(fmt.Errorf("--every and --%s %s contradict each other: each run reads the file again, and this one can be read only once", name, file.Value), "give a regular file")
		}
	}
	for _, name := range f.ignoreLimits {
		if limits := judge.LimitNames(); !slices.Contains(limits, name) {
			return ipam.BadInput(fmt.Errorf("--unsafe-ignore-limit: no limit named %q", name), cmp.Or(printable.Meant(name, limits), "use "+listOf(limits)))
		}
	}
	if err := f.overrides.check(); err != nil {
		return err
	}
	return f.commandFlags.check()
}

// readOnce reports whether a file is empty when it is read again: standard input, or a pipe.
func readOnce(file string) bool {
	info, err := os.Stat(file)
	return file == dump.Stdin || err == nil && !info.Mode().IsRegular() && !info.IsDir()
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
	figures, err := metricsTo(f.pushURL, f.metricsFile, selection)
	if err != nil {
		return err
	}
	logger, started := newLogger(w, f.logFormat, f.verbose), time.Now()
	conn, err := f.open(ctx, w, logger)
	if err != nil {
		figures.writeEarly(ctx, f.target.name(w), started, err, logger)
		return err
	}
	defer conn.close()
	o := conn.Options
	if conn.installed != nil && *o.Policy.DryRun {
		o.Installed = func(ctx context.Context) (policy.Policy, error) {
			p, err := conn.installed(ctx)
			if err == nil {
				f.overrides.apply(&p)
			}
			return p, err
		}
	}
	logger.Info("run", "version", o.Version, "server", o.Origin.Cluster, "context", o.Context, "dryRun", *o.Policy.DryRun)
	o.Selection, o.Shown = selection, f.shown(w) && !f.out.quiet
	o.Brief = printing.Brief() && !f.verbose // a verbose log has a line for each decision
	o.IgnoreLimits, o.AcceptNewStore, o.Remember = f.ignoreLimits, f.acceptStore, f.remember
	o.Overrides = joinFlags(f.flags, termNames...)
	o.Ending = ending(ctx)
	if f.wait > 0 {
		o.Sleep, o.MaxWait = w.sleep, f.wait
	}
	if w.terminal && !f.out.quiet {
		o.Progress = w.progress
	}
	found, runErr := reaper.Run(ctx, o)
	logger.Info("done", "allocations", found.Summary.Entries, "planned", found.Summary.Planned,
		"released", found.Summary.Released, "deleting", found.Summary.Deleting, "failed", found.Summary.Failed)
	found.Result.ExitCode, found.Result.Error = o.Ending(runErr)
	printing.Run = runCommand(w, f.commandFlags, found.Run, filterNames...)
	var printErr error
	mistyped := isMistake(runErr) && len(found.Result.Refused) == 0 // then nothing was judged
	if !mistyped {
		printErr = print.Write(w.stdout, printing, found)
	}
	if err := writeTermination(f.terminationLog, found, runErr); err != nil {
		logger.Warn("writing the termination message failed", "err", err)
	}
	if err = errors.Join(runErr, printErr); o.Shown && err != nil && printErr == nil && !mistyped {
		err = toldError{err}
	}
	figures.write(ctx, found, err, logger)
	return err
}

// open opens what the run needs. If it fails, nothing stays open.
func (f runFlags) open(ctx context.Context, w ioStreams, logger *slog.Logger) (connection, error) {
	p, err := loadPolicy(ctx, w, f.policyFile)
	if err != nil {
		return connection{}, err
	}
	if dryRun := true; f.target.workstation(w) {
		p.DryRun = &dryRun // only a flag makes it release
	}
	effective := p
	f.overrides.apply(&effective)
	conn, err := f.connect(ctx, w, !*effective.DryRun || f.remember, p, logger)
	if err != nil {
		return connection{}, err
	}
	f.overrides.apply(&conn.Policy)
	conn.Journals = conn.journals
	return conn, nil
}

// repeat calls run again and again until ctx ends; if that is between two runs, it returns nil.
// Each run opens everything again, including the policy. A run that fails is reported, and the next
// one tries again. But if the first one finds a mistake of the user, repeat ends: in the log it may
// go unseen.
func repeat(ctx context.Context, w ioStreams, every time.Duration, run func(context.Context) error) error {
	for first := true; ; first = false {
		err := run(ctx)
		if ctx.Err() != nil || first && isUsage(err) {
			return err
		}
		if err != nil {
			printError(w, err)
		}
		if w.sleep(ctx, jittered(every)) != nil {
			return nil
		}
	}
}

// jittered returns a duration that is longer by at most a tenth, so that the nodes of a cluster
// do not run at the same time. It is never shorter: if the grace period is as long, what one run
// saw first is due in the next one.
func jittered(d time.Duration) time.Duration { return d + mathrand.N(d/10+1) }
