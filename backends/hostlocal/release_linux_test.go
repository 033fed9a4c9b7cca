package hostlocal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/alexflint/go-filemutex"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// allocations returns the allocations of network a with these keys.
func (n *node) allocations(keys ...string) []ipam.Allocation {
	var all []ipam.Allocation
	for _, key := range keys {
		all = append(all, ipam.Allocation{Pool: n.path("networks/a"), Key: key})
	}
	return all
}

// While a plugin holds its lock, nothing is released, and the answer is to try again. If no
// plugin made the file, the lock is also on the folder, even after a release made the file.
func TestReleaseWaitsForTheLockOfThePlugin(t *testing.T) {
	for name, take := range map[string]func(n *node) (unlock func()){
		"the file of plugins since 0.7": func(n *node) func() {
			m, err := filemutex.New(n.path("networks/a/lock"))
			n.must(err)
			n.must(m.Lock())
			return func() { n.must(m.Close()) }
		},
		"the folder of plugins before 0.7": func(n *node) func() {
			d, err := os.Open(n.path("networks/a"))
			n.must(err)
			n.must(syscall.Flock(int(d.Fd()), syscall.LOCK_EX))
			return func() { n.must(d.Close()) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.write("networks/a/10.97.0.1", id)
			b := n.Backend()
			unlock := take(n)
			begun := time.Now()
			errs := b.Release(t.Context(), backendtest.Warrants(t, b, n.cluster(), n.allocations("10.97.0.1")...))
			if !errors.Is(errs[0], ipam.ErrAgain) || time.Since(begun) < lockWait || len(n.left()) != 1 {
				t.Errorf("the answer is %v, and left are %v", errs[0], n.left())
			}
			unlock()
			errs = b.Release(t.Context(), backendtest.Warrants(t, b, n.cluster(), n.allocations("10.97.0.1")...))
			if errs[0] != nil || len(n.left()) != 0 {
				t.Errorf("the answer is %v, and left are %v", errs[0], n.left())
			}
			n.write("networks/a/10.97.0.1", id)
			defer take(n)()
			errs = b.Release(t.Context(), backendtest.Warrants(t, b, n.cluster(), n.allocations("10.97.0.1")...))
			if !errors.Is(errs[0], ipam.ErrAgain) {
				t.Errorf("the answer after a release is %v", errs[0])
			}
		})
	}
}

// Promise 1. An empty file is released if it is still empty under the lock: an ADD that was
// running would have written it.
func TestEmptyFileIsReadAgainUnderTheLock(t *testing.T) {
	n := newNode(t)
	n.write("networks/a/10.97.0.1", "")
	n.write("networks/a/10.97.0.2", "")
	b := n.Backend()
	ws := backendtest.Warrants(t, b, n.cluster(), n.allocations("10.97.0.1", "10.97.0.2")...)
	at := time.Now().Add(-n.since)
	n.must(os.WriteFile(n.path("networks/a/10.97.0.2"), []byte(id), 0o600))
	n.must(os.Chtimes(n.path("networks/a/10.97.0.2"), at, at))
	if errs := b.Release(t.Context(), ws); errs[0] != nil || !errors.Is(errs[1], ipam.ErrChanged) {
		t.Errorf("the answers are %v, want nil and ErrChanged", errs)
	}
	if diff := cmp.Diff([]string{"10.97.0.2"}, n.left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// Promise 5. Nothing but a release or a restore makes the lock of a network.
func TestReadingMakesNoLock(t *testing.T) {
	n := newNode(t)
	n.write("networks/a/10.97.0.1", id)
	b := New(n.settings())
	pools, _ := n.list()
	records, err := b.Record(t.Context(), withPool(pools[n.path("networks/a")]))
	n.must(err)
	backendtest.Compare(t.Context(), b, n.path("networks/a"), []ipam.Record{{Pool: n.path("networks/a"), Key: "10.97.0.1", IP: "10.97.0.1", Stored: records[0]}})
	if _, err := os.Lstat(n.path("networks/a/lock")); err == nil {
		t.Error("there is a lock")
	}
}

// withPool returns the allocations of a pool as the engine hands them to a backend.
func withPool(p ipam.Pool) []ipam.Allocation {
	all := slices.Clone(p.Allocations)
	for i := range all {
		all[i].Backend, all[i].Pool = Name, p.Name
	}
	return all
}

// A folder that a symbolic link has replaced is left alone, and the answer says why.
func TestFolderThatIsAnotherIsNotWritten(t *testing.T) {
	n := newNode(t)
	n.write("networks/a/10.97.0.1", id)
	b := n.Backend()
	ws := backendtest.Warrants(t, b, n.cluster(), n.allocations("10.97.0.1")...)
	n.must(os.Rename(n.path("networks/a"), n.path("moved")))
	n.must(os.Symlink(n.path("moved"), n.path("networks/a")))
	if errs := b.Release(t.Context(), ws); errs[0] == nil {
		t.Error("the answer is nil")
	}
	if _, err := os.Stat(n.path("moved/10.97.0.1")); err != nil {
		t.Errorf("the lease behind the symbolic link: %v", err)
	}
}

// Promise 4, 6. For any content of a folder, a release removes what its warrants name, if it is
// as listed, and nothing else.
func TestReleaseRemovesOnlyWhatWarrantsName(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := newNode(t)
		content := rapid.SampledFrom([]string{"a\r\neth0", "a", "b\r\neth0", "c\r\nnet1", "c", "", "no ID", "d\r\neth0\n"})
		files := rapid.MapOf(
			rapid.SampledFrom([]string{"10.97.0.1", "10.97.0.2", "10.97.0.3", "fd00::1", "fd00::2", "FD00::3", "foo.bak", "lost+found", "lock", "last_reserved_ip.0"}),
			content).Draw(r, "files")
		n.makeDir("networks/a")
		for name, text := range files {
			n.write("networks/a/"+name, text)
		}
		b := n.Backend()
		found, confirmer := backendtest.Orphans(t, b, n.cluster())
		var due []judge.Orphan
		want := make(map[string]string)
		for name, text := range files {
			want[name] = text
		}
		for _, o := range found {
			if rapid.Bool().Draw(r, "release "+o.Allocation().Key) {
				due = append(due, o)
			}
		}
		slices.SortFunc(due, func(a, b judge.Orphan) int { return a.Allocation().IP.Compare(b.Allocation().IP) })
		ws, _ := confirmer.Confirm(t.Context(), due)
		answers := make([]error, len(due))
		for i, o := range due {
			switch key := o.Allocation().Key; {
			case rapid.Bool().Draw(r, "change "+key):
				n.must(os.Remove(n.path("networks/a/" + key)))
				n.write("networks/a/"+key, "new\r\neth0")
				want[key], answers[i] = "new\r\neth0", ipam.ErrChanged
			default:
				delete(want, key)
			}
		}
		for i, err := range n.release(b, ws) {
			if !errors.Is(err, answers[i]) {
				r.Errorf("the answer for %s is %v, want %v", due[i].Allocation().Key, err, answers[i])
			}
		}
		got := make(map[string]string)
		for _, name := range n.left() {
			text, err := os.ReadFile(n.path("networks/a/" + name))
			n.must(err)
			got[name] = string(text)
		}
		delete(want, lockFile)
		if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" {
			r.Errorf("left (-want +got):\n%s", diff)
		}
	})
}

// The lock follows no symbolic link: that would make or lock a lease.
func TestLockThatIsALinkIsNotTaken(t *testing.T) {
	for _, to := range []string{"10.88.0.9", "10.88.0.8"} {
		n := newNode(t)
		n.write("networks/a/10.88.0.8", "s1\r\neth0")
		n.must(os.Symlink(to, n.path("networks/a/lock")))
		d, err := openFolder(n.path("networks/a"))
		n.must(err)
		if unlock, err := d.lock(t.Context(), lockWait); err == nil {
			unlock()
			t.Errorf("the lock is a link to %s, and was taken", to)
		}
		d.close()
		if _, err := os.Lstat(n.path("networks/a/10.88.0.9")); err == nil {
			t.Error("a lease was made through the link")
		}
	}
}
