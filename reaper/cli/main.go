// Package cli is the program: its commands, flags, connections and exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/cri"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

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

const exitStatus = `EXIT STATUS
  0    done, also when there was nothing to do
  1    unexpected: the pods could not be listed, and nothing was released; or the
       report could not be printed
  2    a wrong flag or policy, a file that cannot be read, or a journal that does not
       exist; nothing was written
  3    partial: a backend, a pool or a release failed, the rest is done
  4    a limit refused the plan, or the list of pods is not believed; nothing of the
       plan was released
  5    another run is going on; nothing was done
  130  interrupted; allocations whose release had not begun are kept
`

// ioStreams are the streams and the environment of the program, and its backends.
type ioStreams struct {
	env      func(key string) string
	environ  func() []string // as os.Environ
	stdin    io.Reader
	stdout   io.Writer
	stderr   io.Writer
	terminal bool // stderr is one
	kubectl  bool // it runs as a plugin of kubectl

	stdoutTerminal bool // stdout is one

	backends []plugin.Plugin
	kubelets []string // see cri.Cluster

	// sleep waits for the next run of --every. It returns an error if ctx ends first. nil
	// stands for the function sleep.
	sleep func(ctx context.Context, d time.Duration) error

	// firstAnswer is how long the program waits for the first answer of an API server; 0
	// stands for maxFirstAnswer.
	firstAnswer time.Duration
}

// garbage is how much memory a run may fill with values that it does not need any more, in
// per cent of those that it needs. Go's default of 100 makes a run a tenth faster, and needs
// a third more memory in a cluster of 40,000 pods. The variable GOGC overrides it.
const garbage = 40

// Main runs the program with these backends and the arguments of the process, and
// returns its exit code. The order of the backends is that in which they release:
// see plugin.Plugin.
func Main(plugins []plugin.Plugin) int { return mainOn(cri.KubeletPods(), plugins) }

// mainOn is Main on a node whose kubelets have their pods in these folders.
func mainOn(kubelets []string, plugins []plugin.Plugin) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	kubectl, args := called(os.Args)
	w := ioStreams{
		env:      os.Getenv,
		environ:  os.Environ,
		stdin:    os.Stdin,
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		terminal: term.IsTerminal(int(os.Stderr.Fd())),
		kubectl:  kubectl,

		stdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),

		backends: plugins,
		kubelets: kubelets,
	}
	if err := plugin.Check(plugins); err != nil {
		printError(w, err)
		return exitUnexpected
	}
	return run(ctx, w, args)
}

// run is the program without the process around it.
func run(ctx context.Context, w ioStreams, args []string) int {
	// JSON logs have other escapes, and are printable before they come here.
	w.stderr = &oneAtATime{w: printable.Lines(w.stderr)}
	cmd := newRoot(w) //nolint:contextcheck // cobra carries the context
	cmd.SetArgs(args)
	cmd.SetOut(w.stdout)
	cmd.SetErr(w.stderr)
	if completes(args) {
		plainUsages(cmd)
	}
	err := cmd.ExecuteContext(ctx)
	if turn := (*turnError)(nil); err != nil && !errors.As(err, &turn) {
		printError(w, told(ctx, err))
	}
	return exitCode(ctx, err)
}

// exitCode maps every error to its code.
func exitCode(ctx context.Context, err error) int {
	var (
		turn    *turnError
		limit   *judge.LimitError
		locked  *reaper.LockedError
		partial *report.PartialError
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &turn):
		return turn.code
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

// printError tells the user what went wrong and what to do.
func printError(w ioStreams, err error) {
	for _, line := range linesOf(err) {
		fmt.Fprintf(w.stderr, "%s: %s\n", w.name(), line)
	}
	var usage *ipam.InputError
	var limit *judge.LimitError
	switch {
	case errors.As(err, &usage) && usage.Hint != "":
		fmt.Fprintf(w.stderr, "hint: %s\n", printable.Line(usage.Hint))
	case errors.As(err, &limit):
		for _, remedy := range remedies(limit) {
			fmt.Fprintf(w.stderr, "hint: %s\n", remedy)
		}
	}
}

// remedies returns what to do about a refused plan, each once.
func remedies(limit *judge.LimitError) []string {
	var all []string
	for _, refusal := range limit.Refusals {
		if !slices.Contains(all, refusal.Remedy) {
			all = append(all, refusal.Remedy)
		}
	}
	return all
}
