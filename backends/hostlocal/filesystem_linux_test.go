package hostlocal

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 1. One dataDir may be mounted on all nodes, and this node's runtime knows nothing of the
// sandboxes of another. So a lease goes only from a file system that is known to be local, even if
// the policy names its network.
func TestLeaseOnAFileSystemThatMayBeSharedIsHeld(t *testing.T) {
	for _, tt := range []struct {
		name  string
		magic uint32
		held  string // what the note calls the file system; empty if the lease is not held
	}{
		{"ext4", 0xef53, ""},
		{"xfs", 0x58465342, ""},
		{"btrfs", 0x9123683e, ""},
		{"zfs", 0x2fc12fc1, ""},
		{"f2fs", 0xf2f52010, ""},
		{"bcachefs", 0xca451a4e, ""},
		{"tmpfs", 0x01021994, ""},
		{"ramfs", 0x858458f6, ""},
		{"overlay", 0x794c7630, ""},
		{"nfs", 0x6969, "nfs"},
		{"ceph", 0x00c36400, "ceph"},
		{"fuse, such as virtiofs and GlusterFS", 0x65735546, "fuse"},
		{"9p", 0x01021997, "9p"},
		{"cifs", 0xff534d42, "cifs"},
		{"smb3", 0xfe534d42, "cifs"},
		{"ocfs2", 0x7461636f, "a file system of type 0x7461636f"},
		{"gfs2", 0x01161970, "a file system of type 0x1161970"},
		{"lustre", 0x0bd00bd0, "a file system of type 0xbd00bd0"},
		{"none", 0, "a file system of type 0x0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.write("networks/a/10.97.0.1", id)
			n.write("networks/a/10.97.0.2", "")
			n.write("networks/pods/10.1.0.1", id)
			n.write("networks/strange/10.1.0.1", id)
			b := New(n.settings())
			b.fileSystem = func(*folder) (uint32, error) { return tt.magic, nil }
			listed := 0
			for pool, err := range b.List(t.Context()) {
				n.must(err)
				held := tt.held
				if held == "" && pool.Name == n.path("networks/strange") {
					held = "network strange is not the container runtime's"
				}
				for _, a := range pool.Allocations {
					listed++
					if (a.Protected == "") != (held == "") || !strings.Contains(a.Protected, held) || a.Protected != pool.Protected {
						t.Errorf("%s in %s is held because %q, want %q", a.Key, pool.Name, a.Protected, held)
					}
					if tt.held != "" && !strings.Contains(a.Protected, "another node may have written the lease") {
						t.Errorf("%q does not say why", a.Protected)
					}
				}
			}
			if listed != 4 {
				t.Errorf("%d leases were listed, want 4", listed)
			}
		})
	}
}

// A network of the runtime is in the report while it has no lease, wherever its folder is.
func TestEmptyFolderOnAFileSystemThatMayBeSharedIsListed(t *testing.T) {
	n := newNode(t)
	n.makeDir("networks/pods")
	b := New(n.settings())
	b.fileSystem = func(*folder) (uint32, error) { return unix.NFS_SUPER_MAGIC, nil }
	for pool, err := range b.List(t.Context()) {
		n.must(err)
		if pool.Name == n.path("networks/pods") && strings.Contains(pool.Protected, "nfs") {
			return
		}
	}
	t.Error("the network is not listed as protected")
}

// Promise 1, 4. A file system may be mounted between the listing and the write, also for a network
// whose leases a DEL would release.
func TestReleaseLooksAtTheFileSystemAgain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		magic uint32
		err   error
		want  error
	}{
		{"nfs", unix.NFS_SUPER_MAGIC, nil, ipam.ErrKept},
		{"it cannot be asked", 0, syscall.EIO, syscall.EIO},
		{"still local", unix.EXT4_SUPER_MAGIC, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.withPlugin("host-local")
			leaked := n.leak(id)
			n.write("networks/a/10.97.0.2", strings.Repeat("a", len(id))+"\r\neth0")
			b := New(n.settings())
			ws := backendtest.Warrants(t, b, n.cluster(), append(leaked, n.allocations("10.97.0.2")...)...)
			b.fileSystem = func(*folder) (uint32, error) { return tt.magic, tt.err }
			for _, err := range n.release(b, ws) {
				if !errors.Is(err, tt.want) {
					t.Errorf("the answer is %v, want %v", err, tt.want)
				}
			}
			if left := len(n.left()); left > 0 && tt.want == nil || left != len(ws) && tt.want != nil {
				t.Errorf("left are %v", n.left())
			}
			if _, err := os.Stat(n.path("called")); (err == nil) != (tt.want == nil) {
				t.Errorf("the plugin was called: %v", err == nil)
			}
		})
	}
}

// Promise 2. A folder whose file system is not known fails alone.
func TestFolderOnAFileSystemThatCannotBeAskedIsNotListed(t *testing.T) {
	n := newNode(t)
	n.write("networks/a/10.97.0.1", id)
	n.write("networks/b/10.97.0.1", id)
	b := New(n.settings())
	b.fileSystem = func(d *folder) (uint32, error) {
		if d.path == n.path("networks/a") {
			return 0, syscall.EIO
		}
		return unix.EXT4_SUPER_MAGIC, nil
	}
	var got []string
	for pool, err := range b.List(t.Context()) {
		var failed *ipam.PoolError
		switch {
		case errors.As(err, &failed):
			got = append(got, failed.Network+" failed")
		case err != nil:
			t.Error(err)
		default:
			got = append(got, pool.Name)
		}
	}
	if want := []string{n.path("networks/a") + " failed", n.path("networks/b")}; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("listed are %v, want %v", got, want)
	}
}

// Promise 1. A real file system that is not known to be local, mounted over the folder of a
// network. Files of hugetlbfs have no content unless they are mapped, so the lease is that of a
// plugin that died in its ADD.
func TestLeaseOnARealFileSystemThatIsNotKnownIsHeld(t *testing.T) {
	n := newNode(t)
	n.makeDir("networks/a")
	if err := unix.Mount("none", n.path("networks/a"), "hugetlbfs", 0, ""); err != nil {
		t.Skipf("*** NOT ROOT, OR NO hugetlbfs: NO FILE SYSTEM THAT IS NOT KNOWN TO BE LOCAL IS TESTED: %v ***", err)
	}
	t.Cleanup(func() { n.must(unix.Unmount(n.path("networks/a"), unix.MNT_DETACH)) })
	made, err := os.Create(n.path("networks/a/10.97.0.1"))
	n.must(err)
	n.must(errors.Join(made.Close(), n.age("networks/a/10.97.0.1")))
	pools, errs := n.list()
	a := pools[n.path("networks/a")].Allocations[0]
	if !strings.Contains(a.Protected, "is on a file system of type 0x958458f6,") || !a.Blank || len(errs) > 0 {
		t.Errorf("listed is %+v, errors %v", a, errs)
	}
	b := New(n.settings())
	asked := b.fileSystem
	b.fileSystem = func(*folder) (uint32, error) { return unix.EXT4_SUPER_MAGIC, nil } // when it was listed
	ws := backendtest.Warrants(t, b, n.cluster(), n.allocations("10.97.0.1")...)
	b.fileSystem = asked
	if errs := b.Release(t.Context(), ws); !errors.Is(errs[0], ipam.ErrKept) {
		t.Errorf("the answer is %v, want that it is kept", errs[0])
	}
	if _, err := os.Stat(n.path("networks/a/10.97.0.1")); err != nil {
		t.Error(err)
	}
}
