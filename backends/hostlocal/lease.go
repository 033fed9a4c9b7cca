package hostlocal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// maxLease is how many bytes of a lease are read. The plugin writes a container ID and the
// name of an interface: about 70 bytes.
const maxLease = 1024

// lineBreak is what the plugin writes between the container ID and the interface.
const lineBreak = "\r\n"

// The plugin's own files, next to the leases in a network folder.
const (
	lockFile     = "lock"
	cursorPrefix = "last_reserved_ip" // older plugins: without a suffix
)

// containerID matches the container IDs that CNI allows.
var containerID = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.\-]*$`)

// sandboxID matches the IDs that containerd, CRI-O and cri-dockerd give to sandboxes. Other
// programs that make containers in a network of the runtime, such as nerdctl and cnitool, may
// choose other IDs.
var sandboxID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// isOwn reports whether an entry is one of the plugin's own files, not a lease.
func isOwn(name string) bool {
	return name == lockFile || name == cursorPrefix || strings.HasPrefix(name, cursorPrefix+".")
}

// addressOf returns the address that the name of a file stands for. It is invalid if the plugin
// cannot have written the name: it writes only the form of net.IP.String.
func addressOf(name string) netip.Addr {
	ip, err := netip.ParseAddr(name)
	if err != nil || ip.Zone() != "" || ip.Is4In6() || ip.String() != name {
		return netip.Addr{}
	}
	return ip
}

// An attachment is what a lease says about its owner. The interface is empty in a lease of a
// plugin before version 0.8.
type attachment struct{ id, ifname string }

// String returns the attachment as the plugin writes it.
func (a attachment) String() string {
	if a.ifname == "" {
		return a.id
	}
	return a.id + lineBreak + a.ifname
}

// readAttachment decodes the content of a lease. The plugin ignores surrounding space.
func readAttachment(content []byte) (attachment, error) {
	text := strings.TrimSpace(string(content))
	if text == "" {
		return attachment{}, errors.New("the file is blank")
	}
	id, ifname, two := strings.Cut(text, lineBreak)
	switch {
	case strings.HasPrefix(string(content), lineBreak):
		return attachment{}, errors.New("the first line of the file, the container ID, is empty")
	case !containerID.MatchString(id):
		return attachment{}, errors.New("the file does not begin with a container ID")
	case two && !isInterface(ifname):
		return attachment{}, errors.New("the second line of the file is not an interface name")
	}
	return attachment{id, ifname}, nil
}

// isInterface reports whether Linux allows the name for an interface.
func isInterface(name string) bool {
	const longest = 15
	return name != "" && len(name) <= longest && name != "." && name != ".." && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '/' || r == ':'
	})
}

// lease decodes a file as a lease. The error says why it is not one. The plugin makes a file
// and then writes it, under its lock. So an empty file names no attachment: its ADD is still
// running, or was interrupted (https://github.com/containernetworking/plugins/issues/498).
func (f file) lease() (netip.Addr, attachment, error) {
	ip := addressOf(f.name)
	switch {
	case !f.mode.IsRegular():
		return ip, attachment{}, fmt.Errorf("it is %s, not a regular file", kindOf(f.mode))
	case !ip.IsValid():
		return ip, attachment{}, errors.New("its name is not an address in the plugin's form")
	case f.size == 0:
		return ip, attachment{}, nil
	case f.size > maxLease:
		return ip, attachment{}, fmt.Errorf("the file has %d bytes, but the plugin writes at most %d", f.size, maxLease)
	}
	of, err := readAttachment(f.content)
	return ip, of, err
}

// token returns a value that differs once the address changes hands: the plugin makes a new
// file for each ADD, with the ID of a new container.
func (f file) token() string {
	text := make([]byte, 0, 3*8+maxLease)
	for _, n := range []uint64{f.inode, uint64(f.size), uint64(f.mtime.UnixNano())} {
		text = binary.BigEndian.AppendUint64(text, n)
	}
	sum := sha256.Sum256(append(text, f.content...))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// allocation returns the file as the engine lists it, without what libcni's cache knows. Its
// Sandbox and Interface are parts of its Group, so that a million leases need little more
// memory than one string each.
func (f file) allocation(folder string) ipam.Allocation {
	ip, of, err := f.lease()
	a := ipam.Allocation{Key: f.name, IP: ip, Created: f.mtime, ByRuntime: true}
	if err != nil {
		a.Unreadable = err.Error()
		return a
	}
	a.Token = f.token()
	if of.id == "" {
		a.Blank = true
		return a
	}
	a.Adoption = ipam.SandboxOwned
	a.Group = Name + " " + folder + " " + of.id + " " + of.ifname
	begin := len(a.Group) - len(of.ifname) - 1
	if !sandboxID.MatchString(of.id) {
		a.Foreign = "its container ID is not one that a container runtime gives a sandbox: another program made it"
	}
	a.Owner = ipam.Owner{Sandbox: a.Group[begin-len(of.id) : begin], Interface: a.Group[begin+1:]}
	return a
}
