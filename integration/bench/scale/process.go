package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// errSlow says that a process was stopped at its time limit.
var errSlow = errors.New("it took too long")

// errPartial says that a process failed in part.
var errPartial = errors.New("a part failed")

// A command says how to start a process.
type command struct {
	path string
	args []string
	env  []string // additional variables
}

// measure runs a process to its end and measures it. It fails with errSlow if the process was
// stopped at the limit, and with an error that wraps errPartial if the process exited with
// ip-reaper's code for that.
func measure(ctx context.Context, limit time.Duration, run command) (cost, error) {
	return measureUntil(ctx, limit, run, nil)
}

// measureUntil is measure for a process that works until it is stopped. It stops the process when
// done returns true, and then succeeds. A nil done is not called.
func measureUntil(ctx context.Context, limit time.Duration, run command, done func(context.Context) (bool, error)) (c cost, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	running, end := context.WithCancelCause(limited)
	defer end(nil)
	cmd := exec.CommandContext(running, run.path, run.args...)
	cmd.Env = append(os.Environ(), run.env...)
	var stderr tail
	cmd.Stderr = &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return c, err
	}
	if done != nil {
		go func() { end(poll(running, done)) }()
	}
	highest := peak(cmd.Process.Pid)
	err = cmd.Wait()
	c.wall, c.peak = time.Since(began), highest()
	c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	switch {
	case ctx.Err() != nil:
		return c, ctx.Err()
	case limited.Err() != nil:
		return c, errSlow
	case running.Err() != nil:
		if cause := context.Cause(running); !errors.Is(cause, errDone) {
			return c, cause
		}
		return c, nil
	case cmd.ProcessState.ExitCode() == reap.ExitPartial:
		return c, fmt.Errorf("%w: %s: %w\n%s", errPartial, run.path, err, stderr.data)
	case err != nil || done != nil:
		return c, fmt.Errorf("%s ended: %w\n%s", run.path, err, stderr.data)
	}
	return c, nil
}

// errDone says that the work of a process is done.
var errDone = errors.New("the work is done")

// pollEvery is how often done is called.
const pollEvery = 200 * time.Millisecond

// poll calls done until it returns true, and then returns errDone.
func poll(ctx context.Context, done func(context.Context) (bool, error)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		switch is, err := done(ctx); {
		case err != nil:
			return err
		case is:
			return errDone
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// A tail keeps the end of what is written.
type tail struct{ data []byte }

// tailSize is how much a tail keeps at least.
const tailSize = 4 << 10

// Write implements io.Writer.
func (t *tail) Write(data []byte) (int, error) {
	t.data = append(t.data, data...)
	if len(t.data) > 8*tailSize {
		t.data = bytes.Clone(t.data[len(t.data)-tailSize:])
	}
	return len(data), nil
}
