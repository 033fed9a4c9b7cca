// Crowd loads a real API server with a large cluster in the middle of an outage, for an
// operator who wants to try ip-reaper's commands on it: 60 nodes of which three are
// unreachable, 3,245 pods, 301 Calico blocks in three pools, three ranges of Whereabouts,
// and the ledger and the journals of four days. The pods and the stores are the same in
// every run of the program.
//
//	go run ./demo/crowd
//	go run ./demo/crowd -- ip-reaper run --context demo
//
// Without a command, it prints the variables that lead kubectl and ip-reaper to the cluster,
// and serves the cluster until its standard input is closed. With a command, it runs the
// command with these variables, ends, and exits with the code of the command. Nothing is
// left behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	err := realMain(ctx, os.Args[1:])
	var exit *exec.ExitError
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil && ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "crowd: interrupted: %v\n", err)
		os.Exit(reap.ExitSignal)
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintf(os.Stderr, "crowd: %v\n", err)
		os.Exit(1)
	}
}

func realMain(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("crowd", flag.ContinueOnError)
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", flag.ErrHelp, err)
	}
	l, err := start(ctx, large, time.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Cluster.Stop()) }()
	if flags.NArg() > 0 {
		return l.run(ctx, flags.Args())
	}
	l.tell(os.Stdout)
	return await(ctx, os.Stdin)
}

// start starts a cluster and loads it. The caller stops the cluster.
func start(ctx context.Context, s size, now time.Time) (_ *loader, err error) {
	blocks, err := calico.CRDs(ctx)
	if err != nil {
		return nil, err
	}
	attachments, err := cluster.NetworkAttachmentCRD()
	if err != nil {
		return nil, err
	}
	c, err := cluster.Start(ctx, cluster.Options{CRDs: []string{blocks, attachments}})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	d, err := calico.OnKubernetes(ctx, c)
	if err != nil {
		return nil, err
	}
	l := &loader{Datastore: d, crowd: newCrowd(s, now), written: map[int]string{}}
	if err := l.load(ctx); err != nil {
		return nil, fmt.Errorf("load the cluster: %w", err)
	}
	return l, os.WriteFile(l.policy(), []byte(policy), 0o600)
}

// policy is the path of the policy that the variables name.
func (l *loader) policy() string { return filepath.Join(l.Cluster.Dir, "policy.yaml") }

// variables lead kubectl and ip-reaper to the cluster.
func (l *loader) variables() []string {
	return []string{"KUBECONFIG=" + l.Cluster.Kubeconfig, "IP_REAPER_POLICY=" + l.policy(), "IP_REAPER_STATE_NAMESPACE=" + state}
}

// tell prints how the cluster is reached.
func (l *loader) tell(out io.Writer) {
	fmt.Fprintf(out, "%d pods, %d allocations, %d blocks. The context is %s. Close the input to end.\n\n",
		l.podCount(), l.allocationCount(), len(l.blocks), cluster.ContextName)
	for _, variable := range l.variables() {
		fmt.Fprintf(out, "export %s\n", variable)
	}
}

// run runs a command that finds ip-reaper and kubectl.
func (l *loader) run(ctx context.Context, command []string) error {
	program, err := assets.Path("ip-reaper")
	if err != nil {
		return err
	}
	if err := os.Setenv("PATH", filepath.Dir(program)+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), l.variables()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd.Run()
}

// await returns when the input is closed, or with the error of the context.
func await(ctx context.Context, in io.Reader) error {
	closed := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, in)
		closed <- err
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-closed:
		return err
	}
}
