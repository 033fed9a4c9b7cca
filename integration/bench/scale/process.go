package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/bench/program"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A cost is what one process took.
type cost struct {
	Wall     time.Duration  `json:"wall"`              // nanoseconds
	CPU      time.Duration  `json:"cpu"`               // nanoseconds, user and system
	Peak     int            `json:"peak"`              // resident memory in KiB
	Server   serverCost     `json:"server"`            // the API server's meanwhile
	Requests map[string]int `json:"requests"`          // that the API server answered meanwhile, by verb and resource
	Released int            `json:"released"`          // entries and overlapping reservations, or Calico's addresses
	Left     int            `json:"left"`              // that should have been released
	Stopped  bool           `json:"stopped"`           // by its time limit
	Failure  string         `json:"failure,omitempty"` // why not all was released
	Load     float64        `json:"load"`              // of the machine before, averaged over a minute
}

// errSlow says that a process was stopped by its time limit.
var errSlow = errors.New("it took too long")

// errPartial says that a process failed to do a part.
var errPartial = errors.New("a part failed")

// measure runs a process to its end and measures it. It fails with errSlow if the process
// was stopped after the limit, and with an error that wraps errPartial if the process
// exited with the code that ip-reaper then has.
func measure(ctx context.Context, limit time.Duration, path string, args []string) (c cost, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(limited, path, args...)
	var stderr tail
	cmd.Stderr = &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return c, err
	}
	peak := program.Peak(cmd.Process.Pid)
	err = cmd.Wait()
	c.Wall, c.Peak = time.Since(began), peak()
	c.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	switch {
	case ctx.Err() != nil:
		return c, ctx.Err()
	case limited.Err() != nil:
		return c, errSlow
	case cmd.ProcessState.ExitCode() == reap.ExitPartial:
		return c, fmt.Errorf("%w: %s: %w\n%s", errPartial, path, err, stderr.data)
	case err != nil:
		return c, fmt.Errorf("%s: %w\n%s", path, err, stderr.data)
	}
	return c, nil
}

// A tail keeps the end of what is written.
type tail struct{ data []byte }

// tailSize is how much it keeps at least.
const tailSize = 4 << 10

// Write implements io.Writer.
func (t *tail) Write(data []byte) (int, error) {
	t.data = append(t.data, data...)
	if len(t.data) > 8*tailSize {
		t.data = bytes.Clone(t.data[len(t.data)-tailSize:])
	}
	return len(data), nil
}
