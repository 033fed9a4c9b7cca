package assets

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// script waits until its standard input is closed, which the kernel does when the process that
// holds the other end is gone, however it ended. Then it kills each process that still has a pid
// file and removes the folder.
const script = `
cat >/dev/null
for f in "$1"/*.pid; do
	[ -f "$f" ] && kill -s KILL -- "-$(cat "$f")"
done
rm -rf -- "$1"
`

// A Guard watches over a folder and the processes with a pid file there: none outlives the program
// that started them, even a test killed by its timeout or a demo killed with -9.
type Guard struct {
	dir  string
	cmd  *exec.Cmd
	pipe io.Closer
}

// StartGuard starts a guard of the folder. The caller must Release it.
func StartGuard(dir string) (*Guard, error) {
	cmd := exec.Command("/bin/sh", "-c", script, "guard", dir)
	// Its own group: Ctrl-C at the terminal must not end the guard before the processes that it
	// guards.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start guard of %s: %w", dir, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start guard of %s: %w", dir, err)
	}
	return &Guard{dir: dir, cmd: cmd, pipe: pipe}, nil
}

// Release lets the guard do its work now: it kills the processes and removes
// the folder. Release returns when that is done.
func (g *Guard) Release() error {
	if err := g.pipe.Close(); err != nil {
		return err
	}
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}

// Wrap writes a script that registers itself with the guard and then becomes the program. It must
// be started instead of the program, as the leader of its own process group.
func (g *Guard) Wrap(name, program string) (string, error) {
	// envtest asks a program for its flags with --help before it starts it.
	text := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --help ] || echo $$ >%q\nexec %q \"$@\"\n",
		g.pidFile(name), program)
	path := filepath.Join(g.dir, name)
	return path, os.WriteFile(path, []byte(text), 0o700)
}

// Forget tells the guard that the process has ended: its number may soon be another's.
func (g *Guard) Forget(name string) error {
	return os.Remove(g.pidFile(name))
}

// ForgetAll tells the guard that all its processes have ended.
func (g *Guard) ForgetAll() error {
	files, err := filepath.Glob(g.pidFile("*"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// pidFile returns the pid file of the process with that name.
func (g *Guard) pidFile(name string) string {
	return filepath.Join(g.dir, name+".pid")
}
