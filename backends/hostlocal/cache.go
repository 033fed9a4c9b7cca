package hostlocal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/containernetworking/cni/libcni"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// maxCached is the largest entry of libcni's cache that is read, in bytes.
const maxCached = 1 << 20

// A cache is what libcni knows about the attachments of this node: the runtime's, those of Multus,
// which also calls the plugins of its delegates through libcni, and those of dockershim and
// cri-dockerd. All keep it for DEL. It has only the folders that exist.
type cache []*folder

// cacheFolders returns where the cache may be.
func cacheFolders(dir string) []string {
	return []string{dir + "/results", dir + "/multus/results", dir + "/cache/results"}
}

// openCache opens the cache, if there is one.
func openCache(dir string) (cache, error) {
	var c cache
	for _, folder := range cacheFolders(dir) {
		d, err := openFolder(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			c.close()
			return nil, fmt.Errorf("open libcni's cache: %w", err)
		default:
			c = append(c, d)
		}
	}
	return c, nil
}

func (c cache) close() {
	for _, d := range c {
		d.close()
	}
}

// A cacheFile is the file of an entry of the cache.
type cacheFile struct {
	in   *folder
	name string
}

func (c cacheFile) path() string { return c.in.path + "/" + c.name }

// bySandbox returns the files of each sandbox, for all networks. It can be called once.
func (c cache) bySandbox(ctx context.Context) (map[string][]cacheFile, error) {
	of := make(map[string][]cacheFile)
	for _, d := range c {
		err := d.each(ctx, func(name string) error {
			for part := range strings.SplitSeq(name, "-") {
				if sandboxID.MatchString(part) {
					of[part] = append(of[part], cacheFile{d, name})
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list libcni's cache: %w", err)
		}
	}
	return of, nil
}

// A cached is one entry of the cache.
type cached struct {
	Kind        string         `json:"kind"`
	ContainerID string         `json:"containerId"`
	Config      []byte         `json:"config"`
	IfName      string         `json:"ifName"`
	NetworkName string         `json:"networkName"`
	NetNS       string         `json:"netns,omitzero"` // since libcni 1.2: containerd 2
	Args        [][2]string    `json:"cniArgs"`
	Capability  map[string]any `json:"capabilityArgs"`
	Result      struct {
		Interfaces []struct {
			Sandbox string `json:"sandbox"`
		} `json:"interfaces,omitzero"`
	} `json:"result,omitzero"`

	dir     string // the folder of the cache
	mtime   time.Time
	content []byte
}

// read returns an entry of a container. The error wraps fs.ErrNotExist if there is none. An
// entry that cannot be decoded has only its folder and time.
func (c cacheFile) read(id string) (cached, error) {
	f, err := c.in.read(c.name, maxCached)
	if err != nil {
		return cached{}, err
	}
	var e cached
	isEntry := f.mode.IsRegular() && f.size <= maxCached && json.Unmarshal(f.content, &e) == nil &&
		e.Kind == libcni.CNICacheV1 && e.ContainerID == id && entryName(e.NetworkName, id, e.IfName) == c.name
	if !isEntry {
		e = cached{}
	}
	e.dir = path.Dir(c.in.path)
	e.mtime = f.mtime
	e.content = f.content
	return e, nil
}

// decodes reports whether the file is the entry of one of the sandboxes that its name may be of.
func (c cacheFile) decodes() bool {
	for part := range strings.SplitSeq(c.name, "-") {
		if !sandboxID.MatchString(part) {
			continue
		}
		if e, err := c.read(part); err == nil && e.Kind != "" {
			return true
		}
	}
	return false
}

// namespaces returns the paths of the network namespace of the attachment, without those that
// name it by a process: Linux may have reused the process's number since. Before 1.2, libcni
// has it only in the result, and not every plugin puts a path there.
func (e cached) namespaces() []string {
	all := []string{e.NetNS}
	for _, one := range e.Result.Interfaces {
		all = append(all, one.Sandbox)
	}
	return slices.DeleteFunc(all, func(name string) bool {
		return !strings.HasPrefix(name, "/") || strings.HasPrefix(name, "/proc/")
	})
}

// entryName returns the file name of an entry.
func entryName(network, id, ifname string) string { return network + "-" + id + "-" + ifname }

// find returns the entry of an attachment, as read does.
func (c cache) find(network string, of attachment) (cached, error) {
	const longest = 255 // of a file name
	name := entryName(network, of.id, of.ifname)
	if of.id == "" || of.ifname == "" || len(name) > longest {
		return cached{}, fs.ErrNotExist
	}
	for _, d := range c {
		if e, err := (cacheFile{d, name}).read(of.id); !errors.Is(err, fs.ErrNotExist) {
			return e, err
		}
	}
	return cached{}, fs.ErrNotExist
}

// explain adds to an allocation what its container's entries say: its pod, its time, and
// evidence that keeps it. It reports whether there is an entry.
func (l *listing) explain(entries []cacheFile, a *ipam.Allocation) bool {
	var files, namespaces []string
	attached, decoded := false, false
	for _, at := range entries {
		e, err := at.read(a.Owner.Sandbox)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		files = append(files, at.path())
		attached = attached || !strings.HasSuffix(at.name, "-lo")
		if err != nil {
			a.Protected = cmp.Or(a.Protected, fmt.Sprintf("libcni's cache may say that it is young, and could not be read: %v", err))
			continue
		}
		l.note(at, e)
		if e.mtime.After(a.Created) {
			a.Created = e.mtime
		}
		decoded = decoded || e.Kind != ""
		namespaces = append(namespaces, e.namespaces()...)
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
	}
	if a.Owner.Pod.Namespace == "" || a.Owner.Pod.Name == "" {
		a.Owner.Pod, a.Owner.UID = ipam.PodRef{}, ""
		if decoded {
			a.Foreign = cmp.Or(a.Foreign, "libcni's cache names no pod for its container: another program made it")
		}
	}
	// If loopback has the only entry, no network's ADD completed, and the sandbox was never
	// ready.
	if attached && a.Protected == "" {
		a.Protected, a.UntilBoot = inNamespaces(namespaces, files)
	}
	return len(files) > 0
}

// inNamespaces says that the network namespace of a container exists, or may exist; empty if it
// does not. unseen is set if that cannot be seen: then something may run in it until the node is booted
// again. A runtime that stops a sandbox removes its namespace, after DEL. So if it exists
// and the runtime does not have the sandbox, the runtime may have lost a running sandbox: on
// start, containerd leaves out those that it cannot load.
func inNamespaces(paths, files []string) (says string, unseen bool) {
	remove := ": if no process of its pod is left, remove " + strings.Join(files, " ")
	if len(paths) == 0 {
		return "libcni's cache names no network namespace that can be checked, so something may still run in it" + remove, true
	}
	for _, name := range slices.Compact(paths) {
		switch exists, err := namespaceExists(name); {
		case err != nil:
			says, unseen = fmt.Sprintf("its network namespace may exist: %v", err)+remove, true
		case exists:
			return fmt.Sprintf("its network namespace %s exists, so something may still run in it: if \"ip netns pids %s\" prints nothing, run "+
				"\"ip netns delete %[2]s\"", name, path.Base(name)), false
		}
	}
	return says, unseen
}

// namespaceExists reports whether there is a network namespace at the path. It is an error if
// the folder of the path does not exist: in a pod, it might not be mounted.
func namespaceExists(name string) (bool, error) {
	paths := []string{name}
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "/var"), "/run/"); ok {
		paths = []string{"/run/" + rest, "/var/run/" + rest} // one folder, but not in a container
	}
	looked := false
	for _, one := range paths {
		if _, err := os.Lstat(one); !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
		_, err := os.Stat(path.Dir(one))
		looked = looked || err == nil
	}
	if !looked {
		return false, fmt.Errorf("the folder of %s does not exist here: if this is a pod, mount it", name)
	}
	return false, nil
}
