package hostlocal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// TestMain also makes the test binary a CNI plugin.
func TestMain(m *testing.M) {
	if os.Getenv("CNI_COMMAND") != "" {
		os.Exit(runPlugin())
	}
	os.Exit(m.Run())
}

// runPlugin is a CNI plugin that frees addresses on DEL as host-local does. The plugin "half"
// frees one of them and fails. "meet" waits for the plugins of two other containers, and fails
// if another one runs for its own.
func runPlugin() int {
	data, err := io.ReadAll(os.Stdin)
	var c struct{ Name, DataDir string }
	if err != nil || json.Unmarshal(data, &c) != nil {
		return 2
	}
	if os.Getenv("CNI_COMMAND") == "VERSION" {
		fmt.Println(`{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}`)
		return 0
	}
	dir := filepath.Join(c.DataDir, c.Name)
	called := fmt.Sprintf("%s %s %q\n", os.Getenv("CNI_COMMAND"), os.Getenv("CNI_IFNAME"), os.Getenv("CNI_NETNS"))
	if err := os.WriteFile(filepath.Join(c.DataDir, "..", "called"), []byte(called), 0o600); err != nil {
		return 3
	}
	name := filepath.Base(os.Args[0])
	if name == "meet" && !meet(filepath.Join(c.DataDir, "..")) {
		return 4
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		content, _ := os.ReadFile(path)
		if string(content) == os.Getenv("CNI_CONTAINERID")+"\r\n"+os.Getenv("CNI_IFNAME") {
			_ = os.Remove(path)
			if name == "half" {
				return 1
			}
		}
	}
	return 0
}

// meet waits until three containers have been here. It reports false if they do not come, or if
// another plugin runs for its container.
func meet(dir string) bool {
	id := os.Getenv("CNI_CONTAINERID")
	busy := filepath.Join(dir, "busy-"+id)
	if os.Mkdir(busy, 0o700) != nil || os.WriteFile(filepath.Join(dir, "container-"+id), nil, 0o600) != nil {
		return false
	}
	defer func() { _ = os.Remove(busy) }()
	for end := time.Now().Add(delTimeout / 2); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if all, _ := filepath.Glob(filepath.Join(dir, "container-*")); len(all) == 3 {
			time.Sleep(100 * time.Millisecond) // so that another one of its container would meet it
			return true
		}
	}
	return false
}

// withPlugin gives the node a plugin that its attachments name.
func (n *node) withPlugin(name string) {
	n.Helper()
	self, err := os.Executable()
	n.must(err)
	n.must(os.Symlink(self, n.path("bin/"+name)))
	n.bin = name
}

// leak makes an attachment with two addresses, and entries of the suite for them.
func (n *node) leak(sandbox string) []ipam.Allocation {
	n.Helper()
	owner := ipam.Owner{Pod: ipam.PodRef{Namespace: "default", Name: "gone"}, Sandbox: sandbox, Interface: "eth0"}
	n.write("networks/a/10.97.0.1", sandbox+"\r\neth0")
	n.write("networks/a/fd00::1", sandbox+"\r\neth0")
	n.must(n.remember("a", owner))
	pool := n.path("networks/a")
	return []ipam.Allocation{{Pool: pool, Key: "10.97.0.1"}, {Pool: pool, Key: "fd00::1"}}
}

// left returns the names of the files in network a.
func (n *node) left() []string {
	n.Helper()
	entries, err := os.ReadDir(n.path("networks/a"))
	n.must(err)
	left := []string{}
	for _, e := range entries {
		if e.Name() != lockFile {
			left = append(left, e.Name())
		}
	}
	return left
}

// The plugins' own DEL releases what libcni knows, with the namespace that the attachment had.
// If it fails, the files go anyway, and the answer says so.
func TestReleaseCallsDEL(t *testing.T) {
	for _, tt := range []struct {
		name, plugin, cache string
		called, remembered  bool // the plugin was called, and libcni's entry stays
	}{
		{"a plugin", "host-local", "results", true, false},
		{"a delegate of Multus", "host-local", "multus/results", true, false},
		{"a plugin that fails halfway", "half", "results", true, true},
		{"no plugin", "", "results", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			if tt.plugin != "" {
				n.withPlugin(tt.plugin)
			}
			n.cache = "cache/" + tt.cache
			leaked := n.leak(id)
			n.write("networks/a/10.97.0.2", "another\r\neth0")
			b := n.Backend()
			ws := backendtest.Warrants(t, b, n.cluster(), leaked...)
			fails := tt.called && tt.remembered
			for i, err := range n.release(b, ws) {
				if errors.Is(err, ipam.ErrUnfinished) != fails || !fails && err != nil {
					t.Errorf("answer %d: %v, want ErrUnfinished: %v", i+1, err, fails)
				}
			}
			var want string
			if tt.called {
				want = fmt.Sprintf("DEL eth0 %q\n", n.netns)
			}
			called, _ := os.ReadFile(n.path("called"))
			if diff := cmp.Diff(want, string(called)); diff != "" {
				t.Errorf("the plugin was called with (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"10.97.0.2"}, n.left()); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			_, err := os.Stat(n.path(n.entry("a", ipam.Owner{Sandbox: id, Interface: "eth0"})))
			if remembered := err == nil; remembered != tt.remembered {
				t.Errorf("libcni has the entry: %v, want %v", remembered, tt.remembered)
			}
		})
	}
}

// DELs of different containers run at the same time, those of one container do not.
func TestDELsRunSideBySide(t *testing.T) {
	n := newNode(t)
	n.withPlugin("meet")
	var keys []string
	for i, of := range []attachment{{"a", "eth0"}, {"a", "net1"}, {"b", "eth0"}, {"c", "eth0"}} {
		of.id = strings.Repeat(of.id, len(id))
		keys = append(keys, fmt.Sprint("10.97.0.", i+1))
		n.write("networks/a/"+keys[i], of.String())
		n.must(n.remember("a", ipam.Owner{Pod: ipam.PodRef{Namespace: "default", Name: "gone"}, Sandbox: of.id, Interface: of.ifname}))
	}
	b := New(n.settings())
	ws := backendtest.Warrants(t, b, n.cluster(), n.allocations(keys...)...)
	for i, err := range n.release(b, ws) {
		if err != nil {
			t.Errorf("answer %d: %v", i+1, err)
		}
	}
}

// A DEL that waits for another one of its container does not begin once the run has ended.
func TestDELWaitsNoLongerThanTheRun(t *testing.T) {
	b := New(Settings{})
	done, err := b.take(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.take(ctx, id); !errors.Is(err, ipam.ErrAgain) || !errors.Is(err, context.Canceled) {
		t.Errorf("the second DEL of the container: %v, want that its run has ended", err)
	}
}

// Promise 4. DEL releases all addresses of the attachment, so it is not called if one of them
// has no warrant.
func TestDELNeedsAWarrantForEachAddress(t *testing.T) {
	n := newNode(t)
	n.withPlugin("host-local")
	leaked := n.leak(id)
	b := n.Backend()
	ws := backendtest.Warrants(t, b, n.cluster(), leaked[0])
	if errs := b.Release(t.Context(), ws); errs[0] != nil {
		t.Error(errs[0])
	}
	if _, err := os.Stat(n.path("called")); err == nil {
		t.Error("DEL was called")
	}
	if diff := cmp.Diff([]string{"fd00::1"}, n.left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// Promise 1. A sandbox that appears before DEL keeps everything it owns.
func TestSandboxThatAppearsBeforeDELKeeps(t *testing.T) {
	n := newNode(t)
	n.withPlugin("host-local")
	leaked := n.leak(id)
	b, pods := n.Backend(), &backendtest.Pods{}
	ws := backendtest.Warrants(t, b, backendtest.OnNode(pods), leaked...)
	pods.AddSandboxes(census.Sandbox{ID: id})
	for i, err := range n.release(b, ws) {
		if !errors.Is(err, ipam.ErrReturned) {
			t.Errorf("answer %d is %v, want ErrReturned", i+1, err)
		}
	}
	if len(n.left()) != 2 {
		t.Errorf("left are %v", n.left())
	}
}

// cluster returns a node without a sandbox.
func (*node) cluster() census.Cluster { return backendtest.OnNode(&backendtest.Pods{}) }
