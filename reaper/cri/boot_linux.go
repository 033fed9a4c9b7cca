package cri

import (
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// bootFile has the ID of the boot of the kernel.
const bootFile = "/proc/sys/kernel/random/boot_id"

var bootID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// bootIn returns the ID of a boot; empty if the file is none of procfs itself. LXC and systemd-nspawn
// mount another one over it in their containers, and a pod in such a container sees that of the kernel.
func bootIn(file string) string {
	const longest = 64
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	var on unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &on); err != nil || on.Type != unix.PROC_SUPER_MAGIC {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, longest))
	id := strings.TrimSpace(string(text))
	if err != nil || !bootID.MatchString(id) {
		return ""
	}
	return id
}
