package hostlocal_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"

	"github.com/alexflint/go-filemutex"
)

// one is a range with one address, so that every ADD gets the same.
var one = span{"10.1.0.0/24", "10.1.0.2", "10.1.0.2"}

const oneKey = "10.1.0.2"

// secondLook is the list of sandboxes before the release. The first is for the census.
const secondLook = 2

// onList does something while the runtime answers the nth list of sandboxes, counted from now.
func (w *world) onList(n int, do func() error) {
	lists := 0
	w.runtime.OnList(func(context.Context) error {
		if lists++; lists != n {
			return nil
		}
		if err := do(); err != nil {
			w.Errorf("during list %d: %v", n, err)
		}
		return nil
	})
}

// Between the second look and the release, a plugin acts under its lock. The reaper waits for the
// lock, and only then compares what it removes (promises 1 and 4).
func TestLeaseIsComparedUnderTheLock(t *testing.T) {
	next := sandbox("next")
	for _, tt := range []struct {
		name string
		do   func(path string) error
		want fate
	}{
		{"another sandbox has the address, and its file the same time", func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(next.Sandbox+"\r\n"+next.Interface), 0o600); err != nil {
				return err
			}
			return os.Chtimes(path, info.ModTime(), info.ModTime())
		}, changed},
		{"the same sandbox has it again", func(path string) error {
			old := sandbox("old")
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.WriteFile(path, []byte(old.Sandbox+"\r\n"+old.Interface), 0o600)
		}, changed},
		{"it is gone", func(path string) error { return os.Remove(path) }, released},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, one)
			w.leaked(pods, sandbox("old"))
			path := w.lease(pods, oneKey)
			locked, err := filemutex.New(w.lease(pods, "lock"))
			w.must(err)
			defer func() { _ = locked.Close() }()
			w.must(os.Chmod(w.lease(pods, "lock"), 0o600)) // as if a release made it: then the reaper locks the folder first
			var looks atomic.Bool
			w.onList(secondLook, func() error {
				looks.Store(true)
				return locked.Lock()
			})
			p := w.start()
			w.waitForRun(p, func() bool { return looks.Load() && isLocked(w.path(dataDir, pods)) })
			w.must(tt.do(path))
			before := w.content()
			w.must(locked.Unlock())
			report := w.end(p, 0).Report
			w.wantFates(report, pods, map[string]fate{oneKey: tt.want})
			w.wantContent(before)
		})
	}
}
