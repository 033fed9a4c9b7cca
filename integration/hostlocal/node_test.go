package hostlocal_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	cni "github.com/containernetworking/cni/pkg/types/100"

	"github.com/ip-reaper/ip-reaper/backends/hostlocal"
	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The folders of a node, below its root.
const (
	confDir  = "net.d"
	dataDir  = "networks"
	cacheDir = "cache"
	stateDir = "state"
)

// pods is the network that the container runtime loads.
const pods = "pods"

// dead is the age of what is left behind.
const dead = 2 * time.Hour

// A node has the folders of a node, on which the real plugin runs as a container runtime calls it:
// through libcni.
type node struct {
	testing.TB
	root  string
	bin   string            // the folder of the plugin, for the runtime
	found string            // the folder where the reaper looks for plugins
	spans map[string][]span // by network, one for each family

	version string // of CNI, in its configurations
	main    string // the plugin that calls the plugin for addresses
	cache   string // the folder of libcni's cache
}

// A span is a range of a network. Without a start and an end, it is the whole subnet.
type span struct {
	Subnet     string `json:"subnet"`
	RangeStart string `json:"rangeStart,omitempty"`
	RangeEnd   string `json:"rangeEnd,omitempty"`
}

// newNode returns a node without leases, whose runtime loads the network pods with these spans.
func newNode(t testing.TB, spans ...span) *node {
	t.Helper()
	plugin, err := assets.Path("host-local")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{TB: t, root: t.TempDir(), bin: filepath.Dir(plugin), found: filepath.Dir(plugin), spans: map[string][]span{},
		version: "1.0.0", main: "host-local", cache: cacheDir}
	for _, dir := range []string{confDir, dataDir, cacheDir, "netns"} {
		n.must(os.MkdirAll(n.path(dir), 0o755))
	}
	if len(spans) == 0 {
		spans = []span{{Subnet: "10.1.0.0/24"}}
	}
	n.spans[pods] = spans
	n.must(os.WriteFile(n.path(confDir, "10-pods.conflist"), n.config(pods), 0o600))
	return n
}

func (n *node) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// path returns the path of something below the root.
func (n *node) path(names ...string) string {
	return filepath.Join(append([]string{n.root}, names...)...)
}

// lease returns the path of a file in the folder of a network.
func (n *node) lease(network, name string) string { return n.path(dataDir, network, name) }

// config returns the configuration of a network. Unless there is another main plugin, the plugin for
// addresses also takes the place of the plugin that would call it and make a device.
func (n *node) config(network string) []byte {
	n.Helper()
	var ranges [][]span
	for _, one := range n.spans[network] {
		ranges = append(ranges, []span{one})
	}
	text, err := json.Marshal(map[string]any{
		"cniVersion": n.version, "name": network,
		"plugins": []any{map[string]any{
			"type": n.main,
			"ipam": map[string]any{"type": "host-local", "dataDir": n.path(dataDir), "ranges": ranges},
		}},
	})
	n.must(err)
	return text
}

// sandbox returns the sandbox of a pod, with an ID like a runtime's.
func sandbox(pod string) ipam.Owner {
	sum := sha256.Sum256([]byte(pod))
	return ipam.Owner{
		Pod: ipam.PodRef{Namespace: "shop", Name: pod}, UID: "uid-of-" + pod,
		Sandbox: hex.EncodeToString(sum[:]), Interface: "eth0",
	}
}

// attachment returns the arguments for a sandbox's ADD or DEL.
func (n *node) attachment(network string, of ipam.Owner) (*libcni.CNIConfig, *libcni.NetworkConfigList, *libcni.RuntimeConf) {
	n.Helper()
	list, err := libcni.NetworkConfFromBytes(n.config(network))
	n.must(err)
	return libcni.NewCNIConfigWithCacheDir([]string{n.bin}, n.path(n.cache), nil), list, &libcni.RuntimeConf{
		ContainerID: of.Sandbox, IfName: of.Interface, NetNS: n.path("netns", of.Sandbox),
		Args: [][2]string{
			{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", of.Pod.Namespace}, {"K8S_POD_NAME", of.Pod.Name},
			{"K8S_POD_INFRA_CONTAINER_ID", of.Sandbox}, {"K8S_POD_UID", of.UID},
		},
	}
}

// add gives a sandbox its addresses, as the runtime does. libcni's cache then has an entry for it.
func (n *node) add(ctx context.Context, network string, of ipam.Owner) ([]netip.Addr, error) {
	config, list, runtime := n.attachment(network, of)
	answer, err := config.AddNetworkList(ctx, list, runtime)
	if err != nil {
		return nil, err
	}
	result, err := cni.GetResult(answer)
	if err != nil {
		return nil, err
	}
	var ips []netip.Addr
	for _, one := range result.IPs {
		ip, ok := netip.AddrFromSlice(one.Address.IP)
		if !ok {
			return nil, errors.New("the plugin gave no address")
		}
		ips = append(ips, ip.Unmap())
	}
	return ips, nil
}

// del gives the addresses of a sandbox back, as the runtime does.
func (n *node) del(ctx context.Context, network string, of ipam.Owner) error {
	config, list, runtime := n.attachment(network, of)
	return config.DelNetworkList(ctx, list, runtime)
}

// entry returns the path of the entry in libcni's cache.
func (n *node) entry(network string, of ipam.Owner) string {
	return n.path(n.cache, "results", network+"-"+of.Sandbox+"-"+of.Interface)
}

// forget removes the entry in libcni's cache. There is none if another plugin of the list fails in
// the ADD: such a lease leaks immediately.
func (n *node) forget(network string, of ipam.Owner) {
	n.Helper()
	n.must(os.Remove(n.entry(network, of)))
}

// age gives the leases of a sandbox, and its entry in the cache, this age.
func (n *node) age(network string, of ipam.Owner, age time.Duration, ips ...netip.Addr) error {
	files := []string{n.entry(network, of)}
	for _, ip := range ips {
		files = append(files, n.lease(network, ip.String()))
	}
	return chtimes(age, files...)
}

// chtimes gives files an age, if they exist.
func chtimes(age time.Duration, files ...string) error {
	at := time.Now().Add(-age)
	for _, file := range files {
		if err := os.Chtimes(file, at, at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// given lets the plugin give addresses to a sandbox some time ago.
func (n *node) given(network string, of ipam.Owner, ago time.Duration) []netip.Addr {
	n.Helper()
	ips, err := n.add(n.Context(), network, of)
	n.must(err)
	n.must(n.age(network, of, ago, ips...))
	return ips
}

// leaked lets the plugin give addresses to a sandbox that is gone, and that libcni does not know.
func (n *node) leaked(network string, of ipam.Owner) []netip.Addr {
	n.Helper()
	ips := n.given(network, of, dead)
	n.forget(network, of)
	return ips
}

// settings returns the settings of the backend.
func (n *node) settings() hostlocal.Settings {
	return hostlocal.Settings{
		DataDirs: []string{n.path(dataDir)}, ConfDir: n.path(confDir), CacheDir: n.path(cacheDir), BinDirs: []string{n.found},
	}
}
