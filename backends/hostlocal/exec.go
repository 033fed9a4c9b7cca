package hostlocal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

// maxAnswer is how many bytes of a plugin's answer are read.
const maxAnswer = 1 << 20

// pipeDelay is how long a process that the plugin left behind may keep the plugin's pipes
// open.
const pipeDelay = time.Second

// busyTries is how many times to try starting a plugin whose file is being written.
const busyTries = 6

// A pluginExec runs the plugins of a node, each in its own process group. It implements
// invoke.Exec. libcni's own implementation waits for every process that the plugin started,
// even after ctx ended.
type pluginExec struct {
	version.PluginDecoder

	// hung has the paths of plugins that did not finish in time. They are not called again.
	hung *sync.Map

	// pause waits before another try to start a plugin whose file is being written. It returns
	// an error if ctx ends first.
	pause func(ctx context.Context) error
}

// FindInPath implements invoke.Exec.
func (*pluginExec) FindInPath(plugin string, paths []string) (string, error) {
	return invoke.FindInPath(plugin, paths)
}

// ExecPlugin implements invoke.Exec. When ctx ends, it kills the plugin's whole process group.
// A plugin that hit a deadline is not started again.
func (e *pluginExec) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	if _, hung := e.hung.Load(path); hung {
		return nil, fmt.Errorf("plugin %s timed out before, and is not called again", path)
	}
	for try := 1; ; try++ {
		answer, err := execute(ctx, path, stdin, environ)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			e.hung.Store(path, true)
		}
		// No later run can call a DEL whose lease is gone.
		if try == busyTries || !errors.Is(err, syscall.ETXTBSY) {
			return answer, err
		}
		if stopped := e.pause(ctx); stopped != nil {
			return nil, errors.Join(err, stopped)
		}
	}
}

func pauseSecond(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// execute runs a plugin once. A plugin that succeeds but leaves a process behind has still
// succeeded.
func execute(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	var answer answer
	c := exec.CommandContext(ctx, path)
	c.Env = environ
	c.Stdin = bytes.NewReader(stdin)
	c.Stdout = &answer
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.WaitDelay = pipeDelay
	c.Cancel = func() error {
		err := syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	err := c.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		return answer.read.Bytes(), nil
	}
	var said types.Error
	if ctx.Err() == nil && json.Unmarshal(answer.read.Bytes(), &said) == nil && said.Msg != "" {
		return nil, &said
	}
	return nil, fmt.Errorf("plugin %s: %w", path, err)
}

// An answer is what a plugin wrote to its stdout. The zero answer is empty. The buffer is not
// embedded: io.Copy would use its ReadFrom, which has no limit.
type answer struct{ read bytes.Buffer }

// Write implements io.Writer. It returns an error if the answer exceeds maxAnswer.
func (a *answer) Write(p []byte) (int, error) {
	if a.read.Len()+len(p) > maxAnswer {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return a.read.Write(p)
}
