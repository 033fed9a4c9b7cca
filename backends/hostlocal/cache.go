package hostlocal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/containernetworking/cni/libcni"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// maxCached is the largest entry of libcni's cache that is read, in bytes.
const maxCached = 1 << 20

// A cache is what libcni knows of the attachments of this node. Runtimes keep it for DEL.
// It is nil where the node has none.
type cache struct{ *folder }

// openCache opens the cache, if there is one.
func openCache(dir string) (*cache, error) {
	d, err := openFolder(dir + "/results")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a nil cache has no entry
	}
	if err != nil {
		return nil, fmt.Errorf("open libcni's cache: %w", err)
	}
	return &cache{d}, nil
}

// close closes the cache, if there is one.
func (c *cache) close() {
	if c != nil {
		c.folder.close()
	}
}

// A cached is one entry of the cache.
type cached struct {
	Kind        string         `json:"kind"`
	ContainerID string         `json:"containerId"`
	Config      []byte         `json:"config"`
	IfName      string         `json:"ifName"`
	NetworkName string         `json:"networkName"`
	NetNS       string         `json:"netns"`
	Args        [][2]string    `json:"cniArgs"`
	Capability  map[string]any `json:"capabilityArgs"`

	mtime time.Time
}

// find returns the entry of an attachment. The error wraps fs.ErrNotExist if there is none.
// An entry that cannot be decoded has nothing but its time.
func (c *cache) find(network string, of attachment) (cached, error) {
	const longest = 255 // of a file name
	name := network + "-" + of.id + "-" + of.ifname
	if c == nil || of.id == "" || of.ifname == "" || len(name) > longest {
		return cached{}, fs.ErrNotExist
	}
	f, err := c.read(name, maxCached)
	if err != nil {
		return cached{}, err
	}
	var e cached
	isEntry := f.mode.IsRegular() && f.size <= maxCached && json.Unmarshal(f.content, &e) == nil &&
		e.Kind == libcni.CNICacheV1 && e.ContainerID == of.id && e.IfName == of.ifname && e.NetworkName == network
	if !isEntry {
		e = cached{}
	}
	e.mtime = f.mtime
	return e, nil
}

// explain adds what the cache knows to an allocation: its pod, and evidence that keeps it. It
// reports whether the cache knows the attachment.
func (c *cache) explain(network string, a *reaper.Allocation) bool {
	e, err := c.find(network, attachment{a.Owner.Sandbox, a.Owner.Interface})
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		a.Protected = fmt.Sprintf("libcni's cache may say that it is young, and could not be read: %v", err)
		return false
	}
	a.Created = later(a.Created, e.mtime)
	if why := e.inNamespace(); why != "" {
		a.Protected = cmp.Or(a.Protected, why)
	}
	if e.Kind == "" {
		return true // it could not be decoded
	}
	for _, arg := range e.Args {
		switch arg[0] {
		case "K8S_POD_NAMESPACE":
			a.Owner.Pod.Namespace = arg[1]
		case "K8S_POD_NAME":
			a.Owner.Pod.Name = arg[1]
		case "K8S_POD_UID":
			a.Owner.UID = arg[1]
		}
	}
	if a.Owner.Pod.Namespace == "" || a.Owner.Pod.Name == "" {
		a.Owner.Pod, a.Owner.UID = reaper.PodRef{}, ""
		a.Foreign = cmp.Or(a.Foreign, "libcni's cache names no pod for its container: another program made it")
	}
	return true
}

// namespace returns the network namespace of the attachment; empty if it is named by a
// process. Linux may have given the number of that process to another one since.
func (e cached) namespace() string {
	if strings.HasPrefix(e.NetNS, "/proc/") || !strings.HasPrefix(e.NetNS, "/") {
		return ""
	}
	return e.NetNS
}

// inNamespace says that the network namespace of the attachment exists, or may exist; empty
// if it does not. A runtime that stops a sandbox removes its namespace, after DEL. So where
// it exists and the runtime does not have the sandbox, the runtime may have lost a sandbox
// that runs: containerd leaves out those that it cannot load when it starts.
func (e cached) inNamespace() string {
	name := e.namespace()
	if name == "" {
		return ""
	}
	paths := []string{name}
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "/var"), "/run/"); ok {
		paths = []string{"/run/" + rest, "/var/run/" + rest} // one folder, but not in a container
	}
	for _, one := range paths {
		switch _, err := os.Lstat(one); {
		case err == nil:
			return fmt.Sprintf("its network namespace %s exists, so something may still run in it: if \"ip netns pids %s\" prints nothing, "+
				"\"ip netns delete %[2]s\"", name, path.Base(name))
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return fmt.Sprintf("its network namespace may exist: %v", err)
		}
	}
	return ""
}

// later returns the later time.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
