// Package cli is the program: its commands, flags, connections and exit codes.
package cli

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/ip-reaper/ip-reaper/reaper/cri"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
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
	return run(ctx, ioStreams{
		env:      os.Getenv,
		environ:  os.Environ,
		stdin:    os.Stdin,
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		terminal: term.IsTerminal(int(os.Stderr.Fd())),
		kubectl:  kubectl,

		stdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),

		backends: plugins,
		kubelets: cri.KubeletPods(),

		sleep:       sleep,
		firstAnswer: firstAnswer,
	}, args)
}

// run is the program without the process around it.
func run(ctx context.Context, w ioStreams, args []string) int {
	// JSON logs have other escapes, and are already printable when they come here.
	w.stderr = &oneAtATime{w: printable.Lines(w.stderr)}
	cmd := newRoot(w) //nolint:contextcheck // cobra carries the context
	cmd.SetArgs(args)
	if completes(args) {
		plainUsages(cmd)
	}
	err := cmd.ExecuteContext(ctx)
	if err != nil {
		printError(w, told(ctx, err))
	}
	return exitCode(ctx, err)
}
