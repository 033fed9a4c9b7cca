package assets

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A Process is a program that runs until it is stopped, under a guard.
type Process struct {
	guard *Guard
	name  string
	log   string
	cmd   *exec.Cmd
	done  chan struct{} // closed when the process has ended
	err   error         // how it ended; read it when done is closed
}

// Run starts a program under its own name in the guard's folder, where it runs and where its output
// goes. Its environment is PATH and env.
func (g *Guard) Run(name, program string, args, env []string) (*Process, error) {
	script, err := g.Wrap(name, program)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{guard: g, name: name, log: filepath.Join(g.dir, name+".log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.cmd = exec.Command(script, args...)
	p.cmd.Dir, p.cmd.Env = g.dir, append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := errors.Join(p.cmd.Start(), out.Close()); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Log returns what the process has printed so far.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop asks the process to end, kills it after the timeout, and returns when it is gone. It is an
// error if it had ended before. Stop must be called once.
func (p *Process) Stop(timeout time.Duration) error {
	var err error
	select {
	case <-p.done:
		err = fmt.Errorf("%s ended by itself: %w\n%s", p.name, p.err, p.Log())
	default:
		err = p.end(timeout)
	}
	return errors.Join(err, p.guard.Forget(p.name))
}

func (p *Process) end(timeout time.Duration) error {
	// It is fine if the process ends at this moment.
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(timeout):
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return nil
}
