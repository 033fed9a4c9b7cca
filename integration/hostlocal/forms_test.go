package hostlocal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// dual are the ranges of a network of both families.
var dual = []span{{Subnet: "10.1.0.0/24"}, {Subnet: "fd00:1::/64"}}

// A form is a lease that no present plugin writes.
type form struct {
	about   string
	name    string
	content string
	mode    os.FileMode // 0600 if zero
	age     time.Duration
	want    fate // of none if it is not listed
}

// forms returns files that an older plugin wrote, or that no plugin wrote at all.
func forms(live, gone reaper.Owner) []form {
	return []form{
		// Older plugins. The content is what their sources write.
		{"CNI 0.3: the ID as it was given", "10.1.0.100", gone.Sandbox + "\n", 0o644, dead, released},
		{"plugins 0.6 and 0.7: the ID", "10.1.0.101", gone.Sandbox, 0o644, dead, released},
		{"the same of a sandbox that is there", "10.1.0.102", live.Sandbox, 0o644, dead, present},
		{"plugins 0.8 to 1.3: ID and interface, readable for all", "10.1.0.103", gone.Sandbox + "\r\nnet1", 0o644, dead, released},
		{"the same of a sandbox that is there", "10.1.0.104", live.Sandbox + "\r\nnet1", 0o644, dead, present},
		{"a short ID, as people give it", "10.1.0.105", live.Sandbox[:12] + "\r\neth0", 0o644, dead, noPods},
		{"IPv6", "fd00:1::64", gone.Sandbox, 0o644, dead, released},
		{"older than the clock of Unix", "10.1.0.106", gone.Sandbox, 0o644, time.Since(time.Unix(-10, 0)), released},
		{"of a clock that was ahead", "10.1.0.107", gone.Sandbox, 0o644, -48 * time.Hour, waiting},
		{"young", "10.1.0.108", gone.Sandbox, 0o644, 9 * time.Minute, young},

		// What a failed write leaves.
		{"an empty file", "10.1.0.110", "", 0, dead, released},
		{"an empty file of IPv6", "fd00:1::6e", "", 0, dead, released},
		{"an empty file that an ADD may write", "10.1.0.113", "", 0, 9 * time.Minute, waiting},
		{"half an ID and zeros", "10.1.0.111", gone.Sandbox[:7] + "\x00\x00\x00", 0, dead, odd},
		{"an interface alone", "10.1.0.112", "\r\neth0", 0, dead, odd},

		// No lease: its content.
		{"two lines of Unix", "10.1.0.120", gone.Sandbox + "\neth0", 0, dead, odd},
		{"three lines", "10.1.0.121", gone.Sandbox + "\r\neth0\r\nnet1", 0, dead, odd},
		{"a path", "10.1.0.122", "../../" + gone.Sandbox + "\r\neth0", 0, dead, odd},
		{"much", "10.1.0.123", gone.Sandbox + strings.Repeat("\r\n", 4000), 0, dead, odd},

		// No lease: its name. The content is that of one.
		{"a copy of an editor", "10.1.0.130~", gone.Sandbox, 0, dead, odd},
		{"a backup", "10.1.0.130.bak", gone.Sandbox, 0, dead, odd},
		{"a hidden file", ".10.1.0.130", gone.Sandbox, 0, dead, odd},
		{"zeros before a number", "10.1.0.030", gone.Sandbox, 0, dead, odd},
		{"IPv6 in capitals", "FD00:1::82", gone.Sandbox, 0, dead, odd},
		{"IPv6 in full", "fd00:1:0:0:0:0:0:82", gone.Sandbox, 0, dead, odd},
		{"IPv6 as Windows has it", "fd00_1__82", gone.Sandbox, 0, dead, odd},
		{"IPv4 in IPv6", "::ffff:10.1.0.130", gone.Sandbox, 0, dead, odd},
		{"a zone", "fe80::1%eth0", gone.Sandbox, 0, dead, odd},
		{"dots", "..10.1.0.130", gone.Sandbox, 0, dead, odd},
		{"a control character", "10.1.0.130\x1b[2J", gone.Sandbox, 0, dead, odd},

		// The plugin's own.
		{"the cursor of CNI 0.4", "last_reserved_ip", "10.1.0.7", 0o644, dead, fate{}},
		{"the cursor of a range that is gone", "last_reserved_ip.7", gone.Sandbox, 0o644, dead, fate{}},
	}
}

// Each form of a lease gets its verdict, whichever version wrote it and whatever its name.
// One run releases those of sandboxes that are gone, and touches no other byte (promises 1,
// 2, 6 and 7).
func TestEachFormGetsItsVerdict(t *testing.T) {
	w := newWorld(t, dual...)
	w.found = t.TempDir() // DEL would remove copies too
	live := sandbox("live")
	want := map[string]fate{}
	var freed []string
	add := func(name string, f fate) {
		want[name] = f
		if f == released {
			freed = append(freed, w.lease(pods, name))
		}
	}

	// The present form, by the plugin.
	given := func(of reaper.Owner, age time.Duration, fates ...fate) {
		for i, ip := range w.given(pods, of, age) {
			add(ip.String(), fates[min(i, len(fates)-1)])
		}
	}
	w.list(live)
	given(live, dead, present)
	given(sandbox("dead"), dead, released)
	given(sandbox("young"), 9*time.Minute, young)
	stopped := sandbox("stopped")
	w.list(stopped)
	w.runtime.SetReady(stopped.Sandbox, false)
	given(stopped, dead, present)
	second := sandbox("dead")
	second.Interface = "net1"
	given(second, dead, released)

	// Both families go together or stay together.
	both := sandbox("one-family-is-young")
	ips := w.given(pods, both, dead)
	w.must(w.age(pods, both, time.Minute, ips[1]))
	w.must(os.Chtimes(w.entry(pods, both), time.Now().Add(-dead), time.Now().Add(-dead)))
	add(ips[0].String(), sibling)
	add(ips[1].String(), young)
	lone := sandbox("one-family-is-gone")
	ips = w.given(pods, lone, dead)
	w.must(os.Remove(w.lease(pods, ips[0].String())))
	add(ips[1].String(), released)

	for i, f := range forms(live, sandbox("old")) {
		gone := sandboxAgain("old", byte(i)) // a group of its own
		content := strings.ReplaceAll(f.content, sandbox("old").Sandbox, gone.Sandbox)
		path := w.lease(pods, f.name)
		w.must(os.WriteFile(path, []byte(content), 0o600))
		if f.mode != 0 {
			w.must(os.Chmod(path, f.mode))
		}
		at := time.Now().Add(-f.age)
		w.must(os.Chtimes(path, at, at))
		if f.want != (fate{}) {
			add(f.name, f.want)
		}
	}
	w.noFiles(add)

	before := w.content()
	report := w.run(0)
	w.wantContent(before, freed...)
	w.wantFates(report, pods, want)
	if content, err := os.ReadFile(w.path("outside")); err != nil || string(content) != sandbox("old").Sandbox {
		t.Errorf("the file to which a link leads has %q, %v", content, err)
	}
	if again := w.run(0); again.Summary.Planned+again.Summary.Released != 0 {
		t.Errorf("a second run planned %d and released %d, want none", again.Summary.Planned, again.Summary.Released)
	}
}

// noFiles makes what is no file and has the name of an address.
func (w *world) noFiles(add func(name string, f fate)) {
	w.Helper()
	gone := sandbox("old").Sandbox
	outside := w.path("outside")
	w.must(os.WriteFile(outside, []byte(gone), 0o600))
	w.must(os.MkdirAll(w.lease(pods, "10.1.0.140"), 0o755))
	w.must(os.WriteFile(filepath.Join(w.lease(pods, "10.1.0.140"), "10.1.0.141"), []byte(gone), 0o600))
	w.must(os.Symlink(outside, w.lease(pods, "10.1.0.142")))
	w.must(os.Symlink("../../outside", w.lease(pods, "fd00:1::8e")))
	w.must(os.Symlink("nowhere", w.lease(pods, "10.1.0.143")))
	w.must(syscall.Mkfifo(w.lease(pods, "10.1.0.144"), 0o600))
	for _, name := range []string{"10.1.0.140", "10.1.0.142", "fd00:1::8e", "10.1.0.143", "10.1.0.144"} {
		add(name, odd)
	}
}

// A plugin that ends in the midst of an ADD leaves an empty file, and no DEL removes it. When
// such files fill the range, no ADD succeeds. They wait until they are older than an ADD can
// take, go, and come back to the byte; with the range free, the plugin works again.
func TestEmptyFilesThatFillTheRange(t *testing.T) {
	w := newWorld(t, span{Subnet: "10.1.0.0/28"})
	w.must(w.del(t.Context(), pods, sandbox("nobody"))) // makes the folder and the lock
	young, old := map[string]fate{}, map[string]fate{}
	var paths []string
	for i := 2; i <= 14; i++ {
		name := fmt.Sprint("10.1.0.", i)
		young[name], old[name] = waiting, released
		paths = append(paths, w.lease(pods, name))
	}
	age := func(by time.Duration) {
		at := time.Now().Add(-by)
		for _, path := range paths {
			w.must(os.Chtimes(path, at, at))
		}
	}
	for _, path := range paths {
		w.must(os.WriteFile(path, nil, 0o600))
	}
	if ips, err := w.add(t.Context(), pods, sandbox("next")); err == nil {
		t.Fatalf("the plugin gives %v of a range that is full", ips)
	}
	age(9 * time.Minute)
	before := w.content()
	w.wantFates(w.run(0), pods, young)
	w.wantContent(before)

	age(11 * time.Minute)
	before = w.content()
	w.wantFates(w.run(0), pods, old)
	w.wantContent(before, paths...)
	w.restore(w.journals()[0], 0)
	w.wantContent(before)
	w.wantFates(w.run(0), pods, old)
	if _, err := w.add(t.Context(), pods, sandbox("next")); err != nil {
		t.Errorf("the plugin still gives no address: %v", err)
	}
}
