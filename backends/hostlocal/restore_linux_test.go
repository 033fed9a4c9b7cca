package hostlocal

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// recorded returns the records of network a, by key, and empties the network.
func (n *node) recorded(b *Backend) map[string]ipam.Record {
	n.Helper()
	pools, _ := n.list()
	all := withPool(pools[n.path("networks/a")])
	stored, err := b.Record(n.Context(), all)
	n.must(err)
	records := make(map[string]ipam.Record)
	for i, a := range all {
		records[a.Key] = ipam.Record{Backend: Name, Pool: a.Pool, Key: a.Key, IP: a.IP.String(), Stored: stored[i]}
		n.must(os.Remove(n.path("networks/a/" + a.Key)))
	}
	return records
}

// Promise 10. A lease comes back with its content, permissions and time.
func TestRestoredLeaseIsAsItWas(t *testing.T) {
	n := newNode(t)
	n.write("networks/a/10.97.0.1", " "+id+"\r\neth0\n")
	n.must(os.Chmod(n.path("networks/a/10.97.0.1"), 0o644))
	before, err := n.Snapshot()
	n.must(err)
	b := New(n.settings())
	record := n.recorded(b)["10.97.0.1"]
	if errs := b.Restore(t.Context(), record.Pool, []ipam.Record{record}, backendtest.Permit); errs[0] != nil {
		t.Fatal(errs[0])
	}
	after, err := n.Snapshot()
	n.must(err)
	name := n.path("networks/a/10.97.0.1")
	if before[name] == "" || before[name] != after[name] {
		t.Errorf("it was %s and is %s", before[name], after[name])
	}
	if left := n.left(); len(left) != 1 {
		t.Errorf("the folder has %v", left)
	}
}

// Promise 10. Two addresses of one attachment come back together or not at all.
func TestGroupIsRestoredWholeOrNotAtAll(t *testing.T) {
	n := newNode(t)
	n.write("networks/a/10.97.0.1", id+"\r\neth0")
	n.write("networks/a/fd00::1", id+"\r\neth0")
	n.write("networks/a/10.97.0.2", "another\r\neth0")
	b := New(n.settings())
	by := n.recorded(b)
	n.write("networks/a/fd00::1", "new\r\neth0")
	pool := n.path("networks/a")
	rs := []ipam.Record{by["10.97.0.1"], by["fd00::1"], by["10.97.0.2"]}
	for name, call := range map[string]func() []error{
		"Compare": func() []error { return backendtest.Compare(t.Context(), b, pool, rs) },
		"Restore": func() []error { return b.Restore(t.Context(), pool, rs, backendtest.Permit) },
	} {
		errs := call()
		if !errors.Is(errs[0], ipam.ErrTaken) || !errors.Is(errs[1], ipam.ErrTaken) || errs[2] != nil && !errors.Is(errs[2], ipam.ErrPresent) {
			t.Errorf("%s answers %v", name, errs)
		}
	}
	if got := strings.Join(n.left(), " "); got != "10.97.0.2 fd00::1" {
		t.Errorf("the folder has %s", got)
	}
	n.must(os.Remove(n.path("networks/a/fd00::1")))
	if errs := b.Restore(t.Context(), pool, rs[:2], backendtest.Permit); errs[0] != nil || errs[1] != nil {
		t.Errorf("the answers are %v", errs)
	}
}

// Promise 1. A permit may end while a restore waits for the lock of a network.
func TestRestoreNeedsItsPermitUnderTheLock(t *testing.T) {
	n := newNode(t)
	n.write("networks/a/10.97.0.1", id)
	b := New(n.settings())
	record := n.recorded(b)["10.97.0.1"]
	asked, ended := 0, errors.New("no permit any more")
	errs := b.Restore(t.Context(), record.Pool, []ipam.Record{record}, func() error {
		if asked++; asked == 1 {
			return nil
		}
		return ended
	})
	if left := n.left(); !errors.Is(errs[0], ended) || len(left) > 0 {
		t.Errorf("the answer is %v, and the folder has %v", errs[0], left)
	}
}

// Promise 10. Empty files come back as they were, each on its own.
func TestEmptyFilesAreRestored(t *testing.T) {
	n := newNode(t)
	n.write("networks/a/10.97.0.1", "")
	n.write("networks/a/10.97.0.2", "")
	before, err := n.Snapshot()
	n.must(err)
	b := New(n.settings())
	by := n.recorded(b)
	n.write("networks/a/10.97.0.2", id)
	pool := n.path("networks/a")
	rs := []ipam.Record{by["10.97.0.1"], by["10.97.0.2"]}
	if errs := b.Restore(t.Context(), pool, rs, backendtest.Permit); errs[0] != nil || !errors.Is(errs[1], ipam.ErrTaken) {
		t.Errorf("the answers are %v, want nil and ErrTaken", errs)
	}
	if errs := backendtest.Compare(t.Context(), b, pool, rs[:1]); !errors.Is(errs[0], ipam.ErrPresent) {
		t.Errorf("then the answer is %v, want ErrPresent", errs[0])
	}
	after, err := n.Snapshot()
	n.must(err)
	if name := n.path("networks/a/10.97.0.1"); before[name] == "" || before[name] != after[name] {
		t.Errorf("it was %s and is %s", before[name], after[name])
	}
}

// Promise 6, 10. A journal can be edited: a record that Record cannot have made changes
// nothing.
func TestRecordsThatAreNoLeasesAreRefused(t *testing.T) {
	n := newNode(t)
	n.write("networks/a/10.97.0.1", id+"\r\neth0")
	n.makeDir("cache/here")
	b := New(n.settings())
	good := n.recorded(b)["10.97.0.1"]
	before, err := n.Snapshot()
	n.must(err)
	for name, change := range map[string]func(*ipam.Record){
		"another address":           func(r *ipam.Record) { r.IP = "10.97.0.2" },
		"a name that is no address": func(r *ipam.Record) { r.Key, r.IP = "lock", "" },
		"a name that leads out":     func(r *ipam.Record) { r.Key = "../10.97.0.1" },
		"a folder beside":           func(r *ipam.Record) { r.Pool = n.path("cache/here") },
		"a folder that leads out":   func(r *ipam.Record) { r.Pool = n.path("networks/..") },
		"a setuid bit":              func(r *ipam.Record) { r.Stored = stored(id, 0o600|os.ModeSetuid, "2026-01-01T00:00:00Z") },
		"no content but space":      func(r *ipam.Record) { r.Stored = stored("\n", 0o600, "2026-01-01T00:00:00Z") },
		"too much content": func(r *ipam.Record) {
			r.Stored = stored(strings.Repeat("x", maxLease+1), 0o600, "2026-01-01T00:00:00Z")
		},
	} {
		bad := good
		change(&bad)
		if errs := b.Restore(t.Context(), bad.Pool, []ipam.Record{bad}, backendtest.Permit); errs[0] == nil {
			t.Errorf("%s: the record was accepted", name)
		}
	}
	after, err := n.Snapshot()
	n.must(err)
	if len(after) != len(before) {
		t.Errorf("the node has %d files, want %d", len(after), len(before))
	}
}

// stored returns the stored part of a record.
func stored(content string, mode os.FileMode, at string) json.RawMessage {
	data, _ := json.Marshal(map[string]any{"content": []byte(content), "mode": mode, "mtime": at})
	return data
}

// After a reboot, a data folder on a tmpfs is empty.
func TestFolderThatIsGoneTakesNothingBack(t *testing.T) {
	n := newNode(t)
	n.write("networks/a/10.97.0.1", id+"\r\neth0")
	b := New(n.settings())
	record := n.recorded(b)["10.97.0.1"]
	n.must(os.RemoveAll(n.path("networks/a")))
	if errs := b.Restore(t.Context(), record.Pool, []ipam.Record{record}, backendtest.Permit); !errors.Is(errs[0], ipam.ErrTaken) {
		t.Errorf("the answer is %v, want ErrTaken", errs[0])
	}
}
