package hostlocal_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// isLocked reports whether another open file holds the lock of a file or folder.
func isLocked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// waitForRun waits until a run reaches a state. It polls without a pause: the state may last only
// milliseconds.
func (w *world) waitForRun(p *reap.Process, there func() bool) {
	w.Helper()
	for end := time.Now().Add(time.Minute); !there(); runtime.Gosched() {
		if time.Now().After(end) {
			w.must(p.Kill())
			w.Fatal("the run did not come there in a minute")
		}
	}
}

// inSecondLook starts a run, and returns it in its second look, which lasts until goOn is closed.
func (w *world) inSecondLook() (p *reap.Process, goOn chan struct{}) {
	w.Helper()
	inside, goOn := make(chan struct{}), make(chan struct{})
	w.onList(secondLook, func() error {
		close(inside)
		<-goOn
		return nil
	})
	p = w.start()
	<-inside
	return p, goOn
}

// Of two runs with one state, the second finds the lock taken and changes nothing. A killed run
// leaves no lock behind (promise 8).
func TestSecondRunFindsTheLock(t *testing.T) {
	w := newWorld(t)
	ips := w.leaked(pods, sandbox("web"))
	before := w.content()
	first, goOn := w.inSecondLook()
	w.end(w.start(), reap.ExitLocked)
	w.wantContent(before)
	w.must(first.Kill())
	w.end(first, reap.ExitedByKill)
	close(goOn)
	w.wantFates(w.run(0), pods, map[string]fate{ips[0].String(): released})
}

// Promise 1. A run is stopped after its plan. A stopped process keeps its lock, but of the folder that it opened:
// at the path there is a copy by now, of which another run may have taken the lock. The stopped run goes on, and
// releases nothing.
func TestRunWhoseStateIsReplacedReleasesNothing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		replace func(w *world, old string) error
		want    fate
		code    int
	}{
		{"by a copy", func(w *world, old string) error { return os.CopyFS(w.state, os.DirFS(old)) }, notBegun, reap.ExitPartial},
		{"by an empty one", func(w *world, _ string) error { return os.Mkdir(w.state, 0o700) }, notBegun, reap.ExitPartial},
		{"by itself", func(w *world, old string) error { return os.Rename(old, w.state) }, released, reap.ExitDone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			ips := w.leaked(pods, sandbox("web"))
			before := w.content()
			stopped, goOn := w.inSecondLook()
			w.must(stopped.Signal(syscall.SIGSTOP))
			old := w.state + ".old"
			w.must(os.Rename(w.state, old))
			w.must(tt.replace(w, old))
			w.must(stopped.Signal(syscall.SIGCONT))
			close(goOn)
			result := w.end(stopped, tt.code)
			w.wantFates(result.Report, pods, map[string]fate{ips[0].String(): tt.want})
			if tt.want != released {
				w.wantContent(before)
			}
		})
	}
}

// Any user of the node may open the folder of a network and lock it. That holds up no release: the
// plugin does not lock it either, and not all users may open the plugin's own lock.
func TestLockOfTheFolderHoldsUpNothing(t *testing.T) {
	w := newWorld(t)
	ips := append(w.leaked(pods, sandbox("web")), w.given(pods, sandbox("attached"), dead)...)
	f, err := os.Open(w.path(dataDir, pods))
	w.must(err)
	defer func() { w.must(f.Close()) }()
	w.must(syscall.Flock(int(f.Fd()), syscall.LOCK_SH))
	if _, err := w.add(t.Context(), pods, sandbox("live")); err != nil {
		t.Errorf("the plugin waits for the folder too: %v", err)
	}
	w.list(sandbox("live"))
	fates := w.fates(w.run(0), pods)
	for _, ip := range ips {
		if got := fates[ip.String()]; got != released {
			t.Errorf("%v is %v, want released", ip, got)
		}
	}
	info, err := os.Stat(w.lease(pods, "lock"))
	w.must(err)
	if info.Mode()&0o007 != 0 {
		t.Errorf("the mode of the plugin's lock is %v: all may lock it", info.Mode())
	}
}

// While the reaper removes files, it holds the plugin's lock: an ADD waits until the reaper goes
// on, or is killed (promise 1).
func TestAddWaitsWhileTheReaperRemoves(t *testing.T) {
	const leases = 900 // one batch
	for name, goOn := range map[string]func(*reap.Process) error{
		"the reaper goes on":   func(p *reap.Process) error { return p.Signal(syscall.SIGCONT) },
		"the reaper is killed": (*reap.Process).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, span{Subnet: "10.1.0.0/16"})
			w.live(pods, sandbox("live"))
			p := w.stoppedWhileRemoving(leases)
			added := make(chan error)
			go func() {
				_, err := w.add(t.Context(), pods, sandbox("next"))
				added <- err
			}()
			w.waitForRun(p, func() bool { return isWaiting(w.lease(pods, "lock")) })
			select {
			case err := <-added:
				t.Errorf("the ADD did not wait: %v", err)
			default:
			}
			w.must(goOn(p))
			w.must(<-added)
			if _, err := p.Wait(); err != nil {
				t.Fatal(err)
			}
			w.list(sandbox("next"))
			w.run(0)
			if left := len(w.content()); left != 4 { // two leases, lock and cursor
				t.Errorf("%d files are left, want 4", left)
			}
			if diff := cmp.Diff(2, len(w.left(pods, sandbox("live"), sandbox("next")))); diff != "" {
				t.Errorf("leases of live sandboxes (-want +got):\n%s", diff)
			}
		})
	}
}

// stoppedWhileRemoving returns a run that is stopped while it removes leases and holds the lock. If
// a run is stopped too late, after the lock of a batch, it runs to its end, and another one starts.
func (w *world) stoppedWhileRemoving(leases int) *reap.Process {
	w.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		first := w.lease(pods, w.fill(pods, leases)[0])
		p := w.start()
		w.waitForRun(p, func() bool {
			_, err := os.Lstat(first)
			return errors.Is(err, os.ErrNotExist)
		})
		w.must(p.Signal(syscall.SIGSTOP))
		w.waitForRun(p, func() bool { return isStopped(p.Pid()) })
		if isLocked(w.lease(pods, "lock")) {
			return p
		}
		w.must(p.Signal(syscall.SIGCONT))
		w.end(p, 0)
	}
	w.Fatal("the reaper does not have the lock while it removes files")
	return nil
}

// isStopped reports whether no thread of a process runs. A signal stops one after the other.
func isStopped(pid int) bool {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		if _, state, _ := strings.Cut(string(text), ") "); readErr != nil || !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return err == nil
}

// fill writes leases of sandboxes that are gone, as the plugin does, and returns their names. The
// plugin itself would take some milliseconds for each.
func (w *world) fill(network string, leases int) []string {
	w.Helper()
	w.must(os.MkdirAll(w.path(dataDir, network), 0o755))
	ip := netip.MustParsePrefix(w.spans[network][0].Subnet).Addr()
	for range 16 { // left for live sandboxes
		ip = ip.Next()
	}
	at := time.Now().Add(-dead)
	var names []string
	for i := range leases {
		ip = ip.Next()
		path := w.lease(network, ip.String())
		w.must(os.WriteFile(path, fmt.Appendf(nil, "%064x\r\neth0", i), 0o600))
		w.must(os.Chtimes(path, at, at))
		names = append(names, ip.String())
	}
	return names
}

// isWaiting reports whether a process is waiting for the lock of a file.
func isWaiting(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	locks, err := os.ReadFile("/proc/locks")
	inode := fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(locks)) {
		if strings.Contains(line, "-> FLOCK") && strings.Contains(line, inode) {
			return true
		}
	}
	return false
}
