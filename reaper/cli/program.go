package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

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

	// sleep waits for the next run of --every. It returns an error if ctx ends first.
	sleep func(ctx context.Context, d time.Duration) error

	// firstAnswer is how long the program waits for the first answer of an API server.
	firstAnswer time.Duration
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

// A oneAtATime is a writer for several goroutines: those that log, and those that show
// progress.
type oneAtATime struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (o *oneAtATime) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(data)
}
