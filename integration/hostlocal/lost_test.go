package hostlocal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// containerds returns the folders of the containerds to test, by name. It skips the test, loudly,
// if one is missing.
func containerds(t *testing.T) map[string]string {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Skip("*** NOT ROOT: sandboxes that containerd loses ARE NOT TESTED ***")
	}
	built := filepath.Join(root, "kind", "build")
	for _, file := range []string{"bin/containerd", "bin/containerd-shim-runc-v2", "bin/ctr", "bin/pause", "bin/runc-bounded", "cni/loopback", "cni/multus", "cni/ptp"} {
		if _, err := os.Stat(filepath.Join(built, file)); err != nil {
			t.Skip("*** MAKE ASSETS HAS NOT BUILT CONTAINERD: sandboxes that containerd loses ARE NOT TESTED ***")
		}
	}
	old, err := exec.LookPath("containerd")
	if err == nil {
		_, err = exec.LookPath("runc")
	}
	if err != nil {
		t.Skip("*** NO CONTAINERD AND RUNC IN THE PATH: sandboxes that containerd loses ARE NOT TESTED ***")
	}
	version, err := exec.Command(old, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(version), " 1.") {
		t.Skipf("*** %s IS NO CONTAINERD 1: sandboxes that it loses ARE NOT TESTED ***", version)
	}
	t.Log(string(version))
	return map[string]string{"containerd 1": filepath.Dir(old), "containerd 2": filepath.Join(built, "bin")}
}

// A containerd that cannot load a sandbox when it starts does not list it, but the sandbox keeps
// running: its lease is kept until its network namespace is gone. Before version 2, containerd's
// entries in libcni's cache name that namespace only in their results. Under Multus, the lease's
// entry is in another folder, as is the pod, which the policy needs (promise 1).
func TestSandboxThatContainerdLost(t *testing.T) {
	for _, tt := range []struct {
		name, containerd, subnet string
		multus                   bool
	}{
		{"1", "containerd 1", "10.241.0.0/24", false},
		{"1-multus", "containerd 1", "10.242.0.0/24", true},
		{"2", "containerd 2", "10.243.0.0/24", false},
		{"2-multus", "containerd 2", "10.244.0.0/24", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newContainerd(t, containerds(t)[tt.containerd], tt.subnet, tt.multus)
			_, other := c.started("other")
			lost, lease := c.started("lost")
			c.wantFates(c.run(0), pods, map[string]fate{other: present, lease: present})

			c.lose(lost)
			before := c.content()
			c.wantFates(c.run(0), pods, map[string]fate{other: present, lease: foreign})
			c.wantContent(before)

			c.end(lost)
			c.more = "namespaces: {exclude: [kube-system]}\n"
			c.wantFates(c.run(0), pods, map[string]fate{other: present, lease: released})
			c.wantContent(before, c.lease(pods, lease))
			for _, file := range c.entries(lost) {
				if strings.HasPrefix(filepath.Base(file), pods+"-") {
					t.Errorf("no DEL was called: %s is there", file)
				}
			}
		})
	}
}
