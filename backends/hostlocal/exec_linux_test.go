package hostlocal

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
)

// script gives the node the plugin "script", a shell script. Its descriptor 3 is a pipe that
// closes when the plugin's last process ends: see processes.
func (n *node) script(lines string) {
	n.Helper()
	n.bin = "script"
	n.must(syscall.Mkfifo(n.path("processes"), 0o600))
	n.write("bin/script", fmt.Sprintf("#!/bin/sh\nexec 3>%q\n%s\n", n.path("processes"), lines))
	n.must(os.Chmod(n.path("bin/script"), 0o700))
}

// processes calls do with each line that the script writes to its descriptor 3. It closes the
// channel when no process of the script is left.
func (n *node) processes(do func(line string)) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		pipe, err := os.Open(n.path("processes")) // waits for the script
		if err != nil {
			n.Error(err)
			return
		}
		defer func() { _ = pipe.Close() }()
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			do(lines.Text())
		}
	}()
	return ended
}

// A process that a plugin leaves behind with the plugin's stdout delays no release.
func TestReleaseDoesNotWaitForWhatAPluginLeft(t *testing.T) {
	n := newNode(t)
	n.script("sleep 600 &\necho $! >&3")
	leaked := n.leak(id)
	b := n.Backend()
	ws := backendtest.Warrants(t, b, n.cluster(), leaked...)
	left := make(chan string, 1)
	ended := n.processes(func(pid string) { left <- pid })
	for i, err := range n.release(b, ws) {
		if err != nil {
			t.Errorf("answer %d: %v", i+1, err)
		}
	}
	select {
	case <-ended:
		t.Error("the release waited for the process")
	default:
	}
	pid, err := strconv.Atoi(<-left)
	n.must(err)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the process is gone: %v", err)
	}
	<-ended
	if diff := cmp.Diff([]string{}, n.left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// A plugin that is called off ends along with the processes that it started.
func TestPluginThatIsCalledOffEndsWithItsProcesses(t *testing.T) {
	n := newNode(t)
	n.script("(sleep 20; echo outlived >&3) &\necho started >&3\nwait")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	said := ""
	ended := n.processes(func(line string) {
		said += line
		stop()
	})
	if answer, err := (&pluginExec{hung: new(sync.Map), pause: pauseSecond}).ExecPlugin(ctx, n.path("bin/script"), nil, os.Environ()); err == nil {
		t.Errorf("the answer of a plugin that was called off is %q", answer)
	}
	<-ended
	if said != "started" {
		t.Errorf("the plugin said %q, want only that it started", said)
	}
}

// atDeadline is a context that reaches its deadline when it is cancelled.
type atDeadline struct{ context.Context }

func (c atDeadline) Err() error {
	if c.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// A plugin that does not end in time is started only once in a run.
func TestPluginThatHangsIsNotCalledAgain(t *testing.T) {
	n := newNode(t)
	n.script("echo started >&3\nsleep 600")
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ended := n.processes(func(string) { end() })
	var hung sync.Map
	if answer, err := (&pluginExec{hung: &hung, pause: pauseSecond}).ExecPlugin(atDeadline{ctx}, n.path("bin/script"), nil, os.Environ()); err == nil {
		t.Errorf("the answer of a plugin that hangs is %q", answer)
	}
	<-ended
	n.must(os.Remove(n.path("processes"))) // a second start would fail with another error
	_, err := (&pluginExec{hung: &hung, pause: pauseSecond}).ExecPlugin(t.Context(), n.path("bin/script"), nil, os.Environ())
	if err == nil || !strings.Contains(err.Error(), "is not called again") {
		t.Errorf("the second call: %v", err)
	}
}

func TestAnswersOfPlugins(t *testing.T) {
	for _, tt := range []struct{ name, script, want, wantErr string }{
		{"an answer", "cat; exit 0", "asked", ""},
		{"an error of CNI", `echo '{"code": 7, "msg": "no such network"}'; exit 1`, "", "no such network"},
		{"another error", "echo sorry; exit 1", "", "bin/script: exit status 1"},
		{"an answer without end", "trap '' PIPE; yes; exit 0", "", "the answer has more than 1048576 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.script(tt.script)
			ended := n.processes(func(string) {})
			answer, err := (&pluginExec{hung: new(sync.Map), pause: pauseSecond}).ExecPlugin(t.Context(), n.path("bin/script"), []byte("asked"), os.Environ())
			<-ended
			if string(answer) != tt.want {
				t.Errorf("the answer is %q, want %q", answer, tt.want)
			}
			if tt.wantErr == "" && err != nil || tt.wantErr != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.wantErr)) {
				t.Errorf("the error is %v, want %q at its end", err, tt.wantErr)
			}
		})
	}
}

// A plugin that is being installed is called once it is complete.
func TestPluginThatIsBeingWrittenIsCalledAgain(t *testing.T) {
	n := newNode(t)
	n.script("cat")
	ended := n.processes(func(string) {})
	writer, err := os.OpenFile(n.path("bin/script"), os.O_WRONLY, 0)
	n.must(err)
	pauses := 0
	e := pluginExec{hung: new(sync.Map), pause: func(context.Context) error {
		pauses++
		return writer.Close()
	}}
	answer, err := e.ExecPlugin(t.Context(), n.path("bin/script"), []byte("asked"), os.Environ())
	if pauses == 0 {
		t.Skip("SKIPPED: this kernel runs files that are being written")
	}
	<-ended
	if err != nil || string(answer) != "asked" || pauses != 1 {
		t.Errorf("the answer is %q, %v after %d pauses, want one after one", answer, err, pauses)
	}
}
