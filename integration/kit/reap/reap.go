// Package reap runs the ip-reaper binary as an operator or a CronJob would, or the same run in the
// process of the test. It has the accounts of an installation, with the rights and the admission
// policies that are shipped, and reads what runs remember.
package reap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// runTimeout ends a run that hangs, unless its context ends first.
const runTimeout = 5 * time.Minute

// ReleaseNow is a policy that releases everything ownerless immediately.
const ReleaseNow = `apiVersion: ip-reaper/v1alpha1
kind: ReapPolicy
dryRun: false
gracePeriod: 0s
minAge: 0s
limits: {maxFraction: 1}
`

// InEtcd is the part of a policy that says that Calico's data is in etcd. Outside a cluster,
// ETCD_ENDPOINTS alone does not say so.
const InEtcd = "backends: {calico: {datastore: etcdv3}}\n"

// ByFile returns the flags that make a run obey the dryRun of a policy, as it would in a pod.
func ByFile(policy string) []string {
	if strings.Contains(policy, "\ndryRun: false\n") {
		return []string{"--dry-run=false"}
	}
	return nil
}

// The exit codes that the binary promises.
const (
	ExitDone     = 0
	ExitError    = 1
	ExitUsage    = 2 // of the flags or the policy
	ExitPartial  = 3
	ExitLimit    = 4
	ExitLocked   = 5
	ExitSignal   = 130
	ExitedByKill = -1 // it did not exit: a signal ended it
)

// A Reaper is the binary.
type Reaper struct {
	Path  string
	Dir   string   // where it runs; the caller's folder if empty
	Env   []string // added to its environment, as KEY=value
	Stdin string   // what it can read
}

// New returns the binary that make build puts into integration/bin.
func New() (*Reaper, error) {
	path, err := assets.Path("ip-reaper")
	if err != nil {
		return nil, err
	}
	return &Reaper{Path: path}, nil
}

// A Result is what a run left behind.
type Result struct {
	ExitCode int
	Stdout   string
	Stderr   string
	Report   *Report // of a run with -o json that printed one, or else nil
}

// Run runs the binary with the arguments and waits for its end. It returns an error if the binary
// could not be run, took too long, or printed JSON that is not a report; any exit code is a Result.
func (r *Reaper) Run(ctx context.Context, args ...string) (Result, error) {
	p, err := r.Start(ctx, args...)
	if err != nil {
		return Result{}, err
	}
	return p.Wait()
}

// A Process is a run under way.
type Process struct {
	cmd            *exec.Cmd
	ctx            context.Context
	cancel         context.CancelFunc
	stdout, stderr bytes.Buffer
}

// Start starts the binary. The caller must Wait for it.
func (r *Reaper) Start(ctx context.Context, args ...string) (*Process, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	p := &Process{ctx: ctx, cancel: cancel}
	p.cmd = exec.CommandContext(ctx, r.Path, args...)
	p.cmd.Dir, p.cmd.Env = r.Dir, append(environ(), r.Env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = strings.NewReader(r.Stdin), &p.stdout, &p.stderr
	// A stopped run gets time to write its report.
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(os.Interrupt) }
	p.cmd.WaitDelay = 10 * time.Second
	if err := p.cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start ip-reaper: %w", err)
	}
	return p, nil
}

// environ returns the environment without what would lead the binary elsewhere.
func environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		key, _, _ := strings.Cut(kv, "=")
		if key != "KUBECONFIG" && !strings.HasPrefix(key, "KUBERNETES_") && !strings.HasPrefix(key, "IP_REAPER_") {
			env = append(env, kv)
		}
	}
	return env
}

// Pid returns the ID of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Kill ends the process immediately, like kill -9. It is no error if it has ended already.
func (p *Process) Kill() error { return p.Signal(os.Kill) }

// Signal sends the process a signal. It is no error if it has ended already.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Wait waits for the end of the process, as Run does. It must be called once.
func (p *Process) Wait() (Result, error) {
	defer p.cancel()
	err := p.cmd.Wait()
	result := Result{
		ExitCode: p.cmd.ProcessState.ExitCode(),
		Stdout:   p.stdout.String(),
		Stderr:   p.stderr.String(),
	}
	if ctxErr := p.ctx.Err(); ctxErr != nil {
		return result, fmt.Errorf("run ip-reaper: %w\n%s", ctxErr, result.Stderr)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return result, fmt.Errorf("run ip-reaper: %w", err)
	}
	if strings.HasPrefix(result.Stdout, "{") {
		result.Report = &Report{}
		err := json.Unmarshal(p.stdout.Bytes(), result.Report)
		switch {
		case err != nil && result.ExitCode == ExitedByKill: // it printed a part
			result.Report = nil
		case err != nil:
			return result, fmt.Errorf("decode report of ip-reaper: %w\n%s", err, result.Stdout)
		case testing.Testing():
			if err := p.valid(); err != nil {
				return result, fmt.Errorf("report of ip-reaper: %w\n%s", err, result.Stdout)
			}
		}
	}
	return result, nil
}

// valid returns an error unless what the process printed is valid by the schemas in docs.
func (p *Process) valid() error {
	root, err := assets.Root()
	if err != nil {
		return err
	}
	return reapertest.Valid(filepath.Dir(root), p.stdout.Bytes())
}
