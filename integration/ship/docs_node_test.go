package ship_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/cri"
	"github.com/ip-reaper/ip-reaper/reaper/cri/critest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// podnet is the network configuration of the page about nodes.
const podnet = `{"cniVersion": "1.0.0", "name": "podnet", "plugins": [
  {"type": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.2.0/24"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}`

// A docsNode is the node of the page: a folder with 253 leases of podnet and one of podman,
// and a runtime that has 11 sandboxes.
type docsNode struct {
	root    string
	runtime *critest.Runtime
}

func newDocsNode(t *testing.T) *docsNode {
	t.Helper()
	n := &docsNode{t.TempDir(), critest.Start(t)}
	write := func(name, text string, age time.Duration) {
		file := n.path(name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(t, os.WriteFile(file, []byte(text), 0o600))
		at := time.Now().Add(-age)
		must(t, os.Chtimes(file, at, at))
	}
	for i := 2; i < 255; i++ {
		id := fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "x%d", i)))
		write(fmt.Sprintf("/var/lib/cni/networks/podnet/10.244.2.%d", i), id+"\r\neth0", 72*time.Hour)
		if i%23 == 5 {
			n.runtime.Add(census.Sandbox{ID: id, Pod: ipam.PodRef{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}, Ready: true})
		}
	}
	write("/var/lib/cni/networks/podnet/lock", "", 0)
	write("/var/lib/cni/networks/podnet/last_reserved_ip.0", "10.244.2.254", 0)
	write("/var/lib/cni/networks/podman/10.88.0.5", strings.Repeat("ab", 32)+"\r\neth0", 72*time.Hour)
	write("/etc/cni/net.d/10-podnet.conflist", podnet, 0)
	must(t, os.MkdirAll(n.path("/var/lib/node_exporter"), 0o700))
	shipped, err := os.ReadFile(filepath.Join(root(t), "deploy", "kustomize", "components", "node", "policy.yaml"))
	must(t, err)
	const here = "backends: {hostlocal: {dataDirs: [%[1]s/var/lib/cni/networks], confDir: %[1]s/etc/cni/net.d, cacheDir: %[1]s/var/lib/cni, binDirs: [%[1]s/opt/cni/bin]}}\n"
	write("/etc/ip-reaper/policy.yaml", string(shipped)+fmt.Sprintf(here, n.root), 0)
	return n
}

func (n *docsNode) path(name string) string { return n.root + name }

// run does what a command of the page says, with the folders of this node in place of those
// of the machine, and with a grace period that does not have to be waited for.
func (n *docsNode) run(t *testing.T, typed string) (string, error) {
	t.Helper()
	program, err := assets.Path("ip-reaper")
	must(t, err)
	typed = strings.NewReplacer("/var/lib/", n.path("/var/lib/"), "/etc/ip-reaper", n.path("/etc/ip-reaper"),
		"--grace-period=60s --wait=2m", "--grace-period=0s").Replace(typed)
	out, err := bash(t.Context(), n.root, typed, []string{filepath.Dir(program)}, "NODE_NAME=worker-2",
		"CONTAINER_RUNTIME_ENDPOINT="+n.runtime.Endpoint(), "IP_REAPER_STATE_DIR="+n.path("/var/lib/ip-reaper"),
		"IP_REAPER_POLICY="+n.path("/etc/ip-reaper/policy.yaml"))
	return strings.ReplaceAll(out, n.root, ""), err
}

// lastRun is the ID of the run that wrote a journal; empty if none did.
func (n *docsNode) lastRun() string {
	journals, _ := filepath.Glob(n.path("/var/lib/ip-reaper/journals/*.jsonl"))
	if len(journals) != 1 {
		return ""
	}
	return strings.TrimSuffix(filepath.Base(journals[0]), ".jsonl")
}

// What the page about nodes types on a node does what it says there.
func TestCommandsOnANodeDoWhatThePageSays(t *testing.T) {
	n := newDocsNode(t)
	onNodes := func(text string) string { return standIn(t, text, n.lastRun) }
	ran := 0
	for _, p := range pages(t) {
		for _, c := range p.commands() {
			if p.path == "docs/node.md" && onNode(c.typed) {
				ran++
				out, err := n.run(t, onNodes(c.typed))
				c.prints(t, p, out, err, onNodes)
			}
		}
	}
	if ran < 7 {
		t.Errorf("%d commands ran", ran)
	}
}

// Without a flag, the program finds the socket of each platform that the page has.
func TestSocketsOfThePageAreFound(t *testing.T) {
	for _, row := range rows(t, "docs/node.md", "platform") {
		if socket := strings.Trim(row[1], "`"); !slices.Contains(cri.Sockets(), socket) {
			t.Errorf("%s: %s is not among those that are looked for", row[0], socket)
		}
	}
}

// onNode reports whether a command of that page is typed on the node.
func onNode(typed string) bool {
	return strings.HasPrefix(typed, "ip-reaper node ")
}
