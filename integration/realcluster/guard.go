package realcluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// guardScript waits until its standard input is closed, which the kernel does
// when the process that holds the other end is gone, however it went. Then it
// kills whatever still has a pid file and removes the folder.
const guardScript = `
cat >/dev/null
for f in "$1"/*.pid; do
	[ -f "$f" ] && kill -s KILL -- "-$(cat "$f")"
done
rm -rf -- "$1"
`

// A guard sees to it that no process and no folder outlives the program that
// started them: not a test killed by its timeout, not a demo killed with -9.
type guard struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

func startGuard(dir string) (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript, "guard", dir)
	// A group of its own: a Ctrl-C at the terminal must not end the guard
	// before those it guards.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start guard of %s: %w", dir, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start guard of %s: %w", dir, err)
	}
	return &guard{cmd: cmd, pipe: pipe}, nil
}

// release lets the guard do its work now, and returns when it is done.
func (g *guard) release() error {
	if err := g.pipe.Close(); err != nil {
		return err
	}
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}

// wrap writes a script that notes its process ID in dir, where the guard finds
// it, and then becomes the program.
func wrap(dir, name, program string) (string, error) {
	// envtest asks a program for its flags with --help before it starts it.
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --help ] || echo $$ >%q\nexec %q \"$@\"\n",
		pidFile(dir, name), program)
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, []byte(script), 0o700)
}

// removePIDFiles tells the guard that the processes have ended.
func removePIDFiles(dir string) error {
	files, err := filepath.Glob(pidFile(dir, "*"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

func pidFile(dir, name string) string {
	return filepath.Join(dir, name+".pid")
}
