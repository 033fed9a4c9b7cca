package hostlocal

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// create makes a file with its content, permissions and modification time, all in one step. It
// fails with fs.ErrExist if the name is taken. The file has no name until it is complete,
// because the plugin reads every file of the folder. A crash leaves nothing behind.
func (d *folder) create(f file) error {
	perm := f.mode.Perm()
	made, err := d.OpenFile(".", unix.O_TMPFILE|os.O_WRONLY, perm)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) {
		return fmt.Errorf("the file system of %s cannot make a file without a name (O_TMPFILE): %w", d.path, err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = made.Close() }()
	if _, err := made.Write(f.content); err != nil {
		return err
	}
	if err := made.Chmod(perm); err != nil { // umask
		return err
	}
	self := fmt.Sprint("/proc/self/fd/", made.Fd())
	if err := os.Chtimes(self, f.mtime, f.mtime); err != nil {
		return err
	}
	if err := made.Sync(); err != nil {
		return err
	}
	dir, err := d.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := unix.Linkat(unix.AT_FDCWD, self, int(dir.Fd()), f.name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &os.PathError{Op: "create", Path: d.path + "/" + f.name, Err: err}
	}
	return nil
}

// fileSystem returns the magic number of the file system that the folder is on: of the folder
// that was opened, even if another file system was mounted at its path since.
func (d *folder) fileSystem() (uint32, error) {
	f, err := d.Open(".")
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return 0, &os.PathError{Op: "fstatfs", Path: d.path, Err: err}
	}
	return uint32(s.Type), nil // its Go type differs between architectures
}

// zfsMagic is ZFS_SUPER_MAGIC of OpenZFS, which is not part of the kernel.
const zfsMagic = 0x2fc12fc1

// notLocal names the file system with this magic number for messages. It is empty for those that
// one node has for itself. Any other may be mounted on several nodes, also one that is not known:
// virtiofs, GlusterFS and many others look like fuse.
func notLocal(magic uint32) string {
	switch magic {
	case unix.EXT4_SUPER_MAGIC, // also that of ext2 and ext3
		unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.BCACHEFS_SUPER_MAGIC, zfsMagic,
		unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
		return ""
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.CEPH_SUPER_MAGIC:
		return "ceph"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "cifs"
	}
	return fmt.Sprintf("a file system of type %#x", magic)
}
