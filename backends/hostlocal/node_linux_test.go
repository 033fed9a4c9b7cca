package hostlocal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alexflint/go-filemutex"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A node is a node's folders, in which it acts like the plugin. It is a backendtest.NodeStore.
// The real plugin does the same in integration/hostlocal.
type node struct {
	*testing.T
	root string

	// since is the age of what the plugin makes.
	since time.Duration

	netns string // the network namespace of what it makes: one that is gone
	cache string // the folder of its entries in libcni's cache
	bin   string // the plugin of what it makes; empty: one that the node lacks
}

func newNode(t *testing.T) *node {
	n := &node{T: t, root: t.TempDir(), since: time.Hour, cache: "cache/results"}
	n.write("net.d/10-pods.conflist", `{"name": "pods", "cniVersion": "1.0.0", "plugins": [{"type": "ptp", "ipam": {"type": "host-local",
		"dataDir": "`+n.path("networks")+`", "ranges": [[{"subnet": "10.1.0.0/27"}], [{"subnet": "fd00::/64"}]]}}]}`)
	n.makeDir("networks")
	n.makeDir("cache/results")
	n.makeDir("cache/multus/results")
	n.makeDir("netns")
	n.netns = n.path("netns/gone")
	n.makeDir("bin")
	return n
}

// settings are the node's. Its networks are all the runtime's.
func (n *node) settings() Settings {
	return Settings{
		DataDirs: []string{n.path("networks")}, ConfDir: n.path("net.d"), CacheDir: n.path("cache"),
		BinDirs: []string{n.path("bin")}, Networks: []string{"a", "b", "c"},
	}
}

func (n *node) path(name string) string { return filepath.Join(n.root, name) }

func (n *node) makeDir(name string) {
	n.Helper()
	if err := os.MkdirAll(n.path(name), 0o755); err != nil {
		n.Fatal(err)
	}
}

// write makes a file as old as the node says.
func (n *node) write(name, content string) {
	n.Helper()
	n.makeDir(filepath.Dir(name))
	if err := os.WriteFile(n.path(name), []byte(content), 0o600); err != nil {
		n.Fatal(err)
	}
	if err := n.age(name); err != nil {
		n.Fatal(err)
	}
}

func (n *node) age(name string) error {
	at := time.Now().Add(-n.since)
	return os.Chtimes(n.path(name), at, at)
}

// ByRuntime implements backendtest.NodeStore.
func (*node) ByRuntime() {}

// Backend implements backendtest.Store.
func (n *node) Backend() ipam.Backend { return New(n.settings()) }

// locked calls do as the plugin does, under its lock.
func (n *node) locked(network string, do func(dir string) error) error {
	dir := filepath.Join("networks", network)
	if err := os.MkdirAll(n.path(dir), 0o755); err != nil {
		return err
	}
	lock, err := filemutex.New(n.path(filepath.Join(dir, "lock")))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := lock.Lock(); err != nil {
		return err
	}
	return do(dir)
}

// poolSize is how many addresses each network of the node has.
const poolSize = 32

// Reserve implements backendtest.Store. It takes the first free address after the last one.
func (n *node) Reserve(pool string, owner ipam.Owner) (a ipam.Allocation, err error) {
	first := netip.AddrFrom4([4]byte{10, pool[0], 0, 1})
	err = n.locked(pool, func(dir string) error {
		cursor := filepath.Join(dir, "last_reserved_ip.0")
		next := first
		if last, err := os.ReadFile(n.path(cursor)); err == nil {
			next = netip.MustParseAddr(string(last)).Next()
		}
		for range poolSize {
			if next.As4()[3] > poolSize {
				next = first
			}
			name := filepath.Join(dir, next.String())
			f, err := os.OpenFile(n.path(name), os.O_RDWR|os.O_EXCL|os.O_CREATE, 0o600)
			if errors.Is(err, fs.ErrExist) {
				next = next.Next()
				continue
			}
			if err != nil {
				return err
			}
			_, err = f.WriteString(owner.Sandbox + "\r\n" + owner.Interface)
			a = ipam.Allocation{Pool: n.path(dir), Key: next.String(), IP: next, Owner: owner, ByRuntime: true}
			a.Owner.Node = ""
			return errors.Join(err, f.Close(), n.age(name), os.WriteFile(n.path(cursor), []byte(next.String()), 0o600))
		}
		return errors.New("no address is free")
	})
	if err == nil {
		err = n.remember(pool, owner)
	}
	return a, err
}

// remember writes the entry of libcni's cache, as a runtime does after ADD.
func (n *node) remember(network string, owner ipam.Owner) error {
	entry, err := json.Marshal(cached{
		Kind: "cniCacheV1", ContainerID: owner.Sandbox, IfName: owner.Interface, NetworkName: network,
		Config: fmt.Appendf(nil, `{"name": %q, "cniVersion": "1.0.0", "plugins": [{"type": %q, "dataDir": %q}]}`,
			network, cmp.Or(n.bin, "missing"), n.path("networks")),
		NetNS: n.netns,
		Args:  [][2]string{{"K8S_POD_NAMESPACE", owner.Pod.Namespace}, {"K8S_POD_NAME", owner.Pod.Name}, {"K8S_POD_UID", owner.UID}},
	})
	if err != nil {
		return err
	}
	name := n.entry(network, owner)
	return errors.Join(os.WriteFile(n.path(name), entry, 0o600), n.age(name))
}

// entry returns the name of the file in libcni's cache.
func (n *node) entry(network string, owner ipam.Owner) string {
	return filepath.Join(n.cache, network+"-"+owner.Sandbox+"-"+owner.Interface)
}

// Free implements backendtest.Store. Like the plugin, it reads every file.
func (n *node) Free(pool string, owner ipam.Owner) error {
	err := n.locked(pool, func(dir string) error {
		return filepath.Walk(n.path(dir), func(path string, info fs.FileInfo, err error) error {
			if err != nil || info.IsDir() {
				return nil
			}
			if content, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(content)) == owner.Sandbox+"\r\n"+owner.Interface {
				return os.Remove(path)
			}
			return nil
		})
	})
	if forgotten := os.Remove(n.path(n.entry(pool, owner))); forgotten != nil && !errors.Is(forgotten, fs.ErrNotExist) {
		return forgotten
	}
	return err
}

// Snapshot implements backendtest.Store.
func (n *node) Snapshot() (map[string]string, error) {
	found := make(map[string]string)
	err := filepath.Walk(n.root, func(path string, info fs.FileInfo, err error) error {
		if err != nil || info.IsDir() || info.Name() == lockFile {
			return err
		}
		content, err := os.ReadFile(path)
		found[path] = fmt.Sprintf("%v %v %q", info.Mode(), info.ModTime().UnixNano(), content)
		return err
	})
	return found, err
}

// Spoil implements backendtest.Spoiler.
func (n *node) Spoil(pool string) (ipam.Allocation, error) {
	dir := filepath.Join("networks", pool)
	n.write(filepath.Join(dir, "10.9.9.9"), "no container ID\n")
	return ipam.Allocation{Pool: n.path(dir), Key: "10.9.9.9"}, nil
}

func TestConformance(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backendtest.Store { return newNode(t) })
}

// must fails the test on an error.
func (n *node) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// release releases the warrants, and returns the answer to each.
func (n *node) release(b ipam.Backend, ws []ipam.Warrant) []error {
	n.Helper()
	errs := b.Release(n.Context(), ws)
	if len(errs) != len(ws) {
		n.Fatalf("%d answers to %d warrants", len(errs), len(ws))
	}
	return errs
}

// list returns the pools by name, and the errors for the others.
func (n *node) list() (map[string]ipam.Pool, []error) {
	n.Helper()
	pools := make(map[string]ipam.Pool)
	var errs []error
	for pool, err := range n.Backend().List(n.Context()) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pools[pool.Name] = pool
	}
	return pools, errs
}
