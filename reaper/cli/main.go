// Package cli is the program: its commands, flags, connections and exit codes.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/cri"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// garbage is how much memory a run may fill with values that it no longer needs, in per cent
// of those that it needs. Go's default of 100 makes a run a tenth faster, but needs a third
// more memory in a cluster of 40,000 pods. The variable GOGC overrides it.
const garbage = 40

// firstAnswer is how long the program waits for the first answer of an API server.
const firstAnswer = 30 * time.Second

// Main runs the program with these backends and the arguments of the process, and
// returns its exit code. The order of the backends is that in which they release:
// see plugin.Plugin.
func Main(plugins []plugin.Plugin) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	kubectl, args := called(os.Args)
	columns, _, _ := term.GetSize(int(os.Stdout.Fd()))
	return run(ctx, ioStreams{
		env:      os.Getenv,
		environ:  os.Environ,
		stdin:    os.Stdin,
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		terminal: term.IsTerminal(int(os.Stderr.Fd())),
		together: sameFile(os.Stdout, os.Stderr),
		kubectl:  kubectl,

		stdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		stdoutWidth:    columns,

		backends: plugins,
		kubelets: cri.KubeletPods(),

		now:         time.Now,
		sleep:       sleep,
		firstAnswer: firstAnswer,
	}, args)
}

// sameFile reports whether two files are one: a terminal, a pipe or a file, but not the socket of a system's log.
func sameFile(a, b *os.File) bool {
	one, err := a.Stat()
	other, otherErr := b.Stat()
	return cmp.Or(err, otherErr) == nil && os.SameFile(one, other) && one.Mode()&os.ModeSocket == 0
}

// run is the program without the process around it.
func run(ctx context.Context, w ioStreams, args []string) int {
	// JSON logs have other escapes, and are already printable when they come here.
	w.stderr = printable.Lines(w.stderr)
	cmd := newRoot(w) //nolint:contextcheck // cobra carries the context
	cmd.SetArgs(args)
	if completes(args) {
		plainUsages(cmd)
	}
	err := cmd.ExecuteContext(ctx)
	if err != nil {
		printError(w, sayInterrupted(ctx, err))
	}
	return exitCode(ctx, err)
}

// ioStreams are the streams and the environment of the program, and its backends.
type ioStreams struct {
	env      func(key string) string
	environ  func() []string // as os.Environ
	stdin    io.Reader
	stdout   io.Writer
	stderr   io.Writer // safe for concurrent use, as files are
	terminal bool      // stderr is one
	together bool      // stderr goes where stdout does, for people
	kubectl  bool      // it runs as a plugin of kubectl

	stdoutTerminal bool // stdout is one
	stdoutWidth    int  // its columns; 0 if that is not known

	backends []plugin.Plugin
	kubelets []string // see cri.Cluster

	now func() time.Time // by which runs judge

	// sleep waits for the next run of --every, and for grace periods. It returns an error if ctx ends first.
	sleep func(ctx context.Context, d time.Duration) error

	// firstAnswer is how long the program waits for the first answer of an API server.
	firstAnswer time.Duration
}

// width returns how many columns a table on stdout may have; 0 for any number, if it is no terminal.
func (w ioStreams) width() int {
	if !w.stdoutTerminal {
		return 0
	}
	if n, err := strconv.Atoi(w.env("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return cmp.Or(w.stdoutWidth, 80)
}

// name returns the words with which the user starts the program.
func (w ioStreams) name() string {
	if w.kubectl {
		return "kubectl ip-reaper"
	}
	return "ip-reaper"
}

// progress prints a line of progress to the terminal.
func (w ioStreams) progress(line string) { fmt.Fprintln(w.stderr, printable.Line(line)) }

// kubectl looks for programs of these names. It runs the first as `kubectl ip-reaper`,
// and the second to complete such a command line.
const (
	kubectlPlugin   = "kubectl-ip_reaper"
	kubectlComplete = "kubectl_complete-ip_reaper"
)

// called returns whether the name of the program, argv[0], is that of a kubectl plugin,
// and the arguments of the command.
func called(argv []string) (kubectl bool, args []string) {
	switch args = argv[1:]; filepath.Base(argv[0]) {
	case kubectlPlugin:
		return true, args
	case kubectlComplete:
		return true, append([]string{cobra.ShellCompRequestCmd}, args...)
	default:
		return false, args
	}
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

// The exit codes are a contract that users script against.
const (
	exitDone        = 0
	exitUnexpected  = 1
	exitUsage       = 2
	exitPartial     = 3
	exitLimit       = 4
	exitLocked      = 5
	exitInterrupted = 130
)

const exitCodes = `  0    done, even if there was nothing to do
  1    unexpected: the API server did not answer or the pods could not be
       listed, and nothing was released; or the report could not be printed
  2    a wrong flag or policy, a name that does not exist, a file that cannot
       be read, or a journal that does not exist or is of another cluster;
       nothing was written. Or the store is not the one that earlier runs
       used; nothing was written to it
  3    partial: a backend, a pool or a release failed; the rest is done. Or,
       with policy validate --strict, a name in a policy matches nothing
  4    a limit refused the plan, or the pod list looks implausible; nothing of
       the plan was released
  5    another run is in progress; nothing was done
  130  interrupted; allocations whose release had not begun are kept
`

// exitCode maps every error to its code.
func exitCode(ctx context.Context, err error) int {
	var (
		limit   *judge.LimitError
		locked  *reaper.LockedError
		partial *report.PartialError
	)
	switch {
	case err == nil:
		return exitDone
	case isUsage(err):
		return exitUsage
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.As(err, &limit):
		return exitLimit
	case errors.As(err, &locked):
		return exitLocked
	case errors.As(err, &partial):
		return exitPartial
	default:
		return exitUnexpected
	}
}

// isUsage reports whether an error is a mistake in what the user gave.
func isUsage(err error) bool {
	var usage *ipam.InputError
	var invalid *policy.Error
	return errors.As(err, &usage) || errors.As(err, &invalid)
}

// isMistake reports whether a mistake in what the user gave ended the command before it did anything. One
// among the failures of a command that went on, such as a place where no journal can be written, did not.
func isMistake(err error) bool {
	var partial *report.PartialError
	return isUsage(err) && !errors.As(err, &partial)
}
