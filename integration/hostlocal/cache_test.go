package hostlocal_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

var (
	had     = fate{"inUse", "AddressInUse", "kept"}
	back    = fate{"orphan", "SandboxAbsent", "returned"}
	attends = fate{"orphan", "SandboxAbsent", "kept"} // since the second look
)

// bridged makes the real bridge plugin attach sandboxes, in a network namespace that stands for the
// node's. It skips the test, loudly, without the rights to make one.
func (n *node) bridged(sandboxes ...string) {
	n.Helper()
	if os.Geteuid() != 0 {
		n.Skip("*** NOT ROOT: what the bridge plugin leaves in the cache IS NOT TESTED ***")
	}
	root, err := assets.Root()
	n.must(err)
	plugin := filepath.Join(root, "kind", "build", "cni", "bridge")
	namespace := func(path string) string {
		n.must(os.WriteFile(path, nil, 0o600))
		if said, err := exec.Command("unshare", "--net="+path, "true").CombinedOutput(); err != nil {
			n.Skipf("*** NO NETWORK NAMESPACES (%s): what the bridge plugin leaves in the cache IS NOT TESTED ***", said)
		}
		n.Cleanup(func() { n.must(exec.Command("umount", path).Run()) })
		return path
	}
	host := namespace(n.path("netns", "host"))
	for _, one := range sandboxes {
		namespace(n.path("netns", sandbox(one).Sandbox))
	}
	ipam := filepath.Join(n.bin, "host-local")
	n.bin = n.path("bin")
	n.must(os.Mkdir(n.bin, 0o755))
	n.must(os.Symlink(ipam, filepath.Join(n.bin, "host-local")))
	n.must(os.WriteFile(filepath.Join(n.bin, "bridge"), fmt.Appendf(nil, "#!/bin/sh\nexec nsenter --net=%s %s\n", host, plugin), 0o755))
	n.main = "bridge"
}

// lost removes the leases of a sandbox, as after a crash of the node, and lets the plugin give its
// address to the next sandbox, whose DEL is lost.
func (w *world) lost(of, next string) {
	w.Helper()
	for _, name := range w.left(pods, sandbox(of)) {
		w.must(os.Remove(w.lease(pods, name)))
	}
	ips := w.leaked(pods, sandbox(next))
	if len(ips) != 1 || ips[0].String() != oneKey {
		w.Fatalf("the plugin gives %v, want the address of %s", ips, of)
	}
}

// Promise 1. The lease of a running pod is lost, the plugin gives its address to another one, and that
// one's DEL is lost, too. libcni's cache has the address for the sandbox that the runtime lists, in
// whatever version of CNI: the lease is kept, and is released once that sandbox is gone.
func TestAddressOfALiveSandboxWhoseLeaseIsLost(t *testing.T) {
	for _, tt := range []struct{ version, plugin string }{
		{"0.1.0", "host-local"}, {"0.2.0", "host-local"}, {"0.3.1", "host-local"}, {"0.4.0", "host-local"}, {"1.0.0", "host-local"}, {"1.1.0", "host-local"},
		{"0.2.0", "bridge"}, {"1.0.0", "bridge"},
	} {
		t.Run(tt.plugin+" "+tt.version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, one)
			w.version = tt.version
			if tt.plugin == "bridge" {
				w.bridged("live", "next")
			}
			w.live(pods, sandbox("live"))
			w.lost("live", "next")
			before := w.content()
			w.wantFates(w.run(0), pods, map[string]fate{oneKey: had})
			w.wantContent(before)

			w.runtime.Remove(sandbox("live").Sandbox)
			w.wantFates(w.run(0), pods, map[string]fate{oneKey: released})
		})
	}
}

// Promise 1, 2, 4. The second look reads the cache again.
func TestSecondLookReadsTheCache(t *testing.T) {
	live := sandbox("live")
	for _, tt := range []struct {
		name string
		do   func(w *world) error // with the list of sandboxes before the release
		want fate
		code int
	}{
		{"the runtime has the sandbox by now", func(w *world) error {
			w.list(live)
			return nil
		}, back, 0},
		{"it has the sandbox by now, whose entry is damaged", func(w *world) error {
			w.list(live)
			return os.Truncate(w.entry(pods, live), 10)
		}, attends, 0},
		{"the cache cannot be read", func(w *world) error {
			results := w.path(cacheDir, "results")
			if err := os.Rename(results, results+".old"); err != nil {
				return err
			}
			return os.WriteFile(results, nil, 0o600)
		}, failed, 3},
		{"nothing has changed", func(*world) error { return nil }, released, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, one)
			w.given(pods, live, dead)
			w.lost("live", "next")
			before := w.content()
			w.onList(secondLook, func() error { return tt.do(w) })
			w.wantFates(w.run(tt.code), pods, map[string]fate{oneKey: tt.want})
			if tt.want != released {
				w.wantContent(before)
			}
		})
	}
}

// An address that the runtime's sandbox has and the plugin does not is told: the plugin gives it to the
// next pod. One whose entry is of an ADD by another IPAM is not.
func TestLostLeaseIsFound(t *testing.T) {
	w := newWorld(t, span{"10.1.0.0/24", "10.1.0.2", "10.1.0.3"})
	w.live(pods, sandbox("live"))
	w.live(pods, sandbox("other"))
	found := func() (ips []string) {
		for _, f := range w.run(0).Findings {
			ips = append(ips, f.Kind+" "+f.IP+" "+f.Network+" "+f.Claims[0].Pod)
		}
		return ips
	}
	if got := found(); len(got) > 0 {
		t.Errorf("with all leases, the findings are %q", got)
	}
	w.must(os.Remove(w.lease(pods, oneKey)))
	want := []string{"unrecorded " + oneKey + " " + w.path(dataDir, pods) + " live"}
	if diff := gocmp.Diff(want, found()); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if ips, err := w.add(t.Context(), pods, sandbox("next")); err != nil || ips[0].String() != oneKey {
		t.Errorf("the plugin gives %v, %v, want the address that was found", ips, err)
	}
}

// Promise 1. dockershim and cri-dockerd have a cache of their own, whose entries name network namespaces
// by a process. What another runtime does not list may still run: its lease is kept, until a run that saw
// this very lease is followed by a boot, or somebody removes the entry.
func TestLeasesOfDocker(t *testing.T) {
	w := newWorld(t)
	w.must(os.MkdirAll(w.path(cacheDir, "cache"), 0o755))
	w.cache = "cache/cache"
	ips := map[string]string{}
	for _, pod := range []string{"old", "again", "by-hand"} {
		ips[pod] = w.given(pods, sandbox(pod), dead)[0].String()
		entry := w.entry(pods, sandbox(pod))
		text, err := os.ReadFile(entry)
		w.must(err)
		w.must(os.WriteFile(entry, []byte(strings.ReplaceAll(string(text), w.path("netns", sandbox(pod).Sandbox), "/proc/4711/ns/net")), 0o600))
		w.must(chtimes(dead, entry))
	}
	fates := func(old, again, byHand fate) map[string]fate {
		return map[string]fate{ips["old"]: old, ips["again"]: again, ips["by-hand"]: byHand}
	}
	before := w.content()
	for range 2 {
		w.wantFates(w.run(0), pods, fates(foreign, foreign, foreign))
		w.wantContent(before)
	}

	// The node is booted, and one of the leases is written again.
	file := filepath.Join(w.state, "ledger")
	data, err := os.ReadFile(file)
	w.must(err)
	form, err := ledgertest.Decode(data)
	w.must(err)
	if len(form.Nodes) != 3 {
		t.Fatalf("the ledger has %d boots, want 3", len(form.Nodes))
	}
	for key := range form.Nodes {
		form.Nodes[key] = "/earlier"
	}
	w.must(os.WriteFile(file, form.Encode(), 0o600))
	again := w.lease(pods, ips["again"])
	w.must(os.Rename(again, again+".old"))
	content, err := os.ReadFile(again + ".old")
	w.must(err)
	w.must(os.WriteFile(again, content, 0o600))
	w.must(os.Remove(again + ".old"))
	w.must(chtimes(dead, again))
	w.list(sandbox("by-hand"))
	w.wantFates(w.run(0), pods, fates(released, foreign, present))
	w.runtime.Remove(sandbox("by-hand").Sandbox)
	w.wantFates(w.run(0), pods, map[string]fate{ips["again"]: foreign, ips["by-hand"]: released})
}

// Promise 7. On a node without libcni's cache, no sandbox claims an address by it. The report says so, and decides
// as before.
func TestNodeWithoutACacheIsSaid(t *testing.T) {
	w := newWorld(t, one)
	w.live(pods, sandbox("live"))
	before := w.run(0)
	w.must(os.RemoveAll(w.path(cacheDir)))
	after := w.run(0)
	says := fmt.Sprintf("no claim by libcni's cache: none of %s, %s, %s exists",
		w.path(cacheDir, "results"), w.path(cacheDir, "multus", "results"), w.path(cacheDir, "cache", "results"))
	if diff := gocmp.Diff(append(before.Warnings, says), after.Warnings); diff != "" {
		t.Errorf("warnings (-with the cache and that +without it):\n%s", diff)
	}
	w.wantFates(after, pods, w.fates(before, pods))
}
