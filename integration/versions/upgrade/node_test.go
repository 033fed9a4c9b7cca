package upgrade_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/cri/critest"
)

// old is the age of each lease of a node: none is too young.
const old = 2 * time.Hour

// leases are those of a node: the sandboxes by network and address. Those of the network
// pods are dead but for the last one, and so is that of the network slow. The container
// runtime loads the first network, and the policy names the other one.
var leases = map[string][]string{
	"pods": {"10.1.0.2 gone-1", "10.1.0.3 gone-2", "10.1.0.4 live"},
	"slow": {"10.2.0.2 slow-1"},
}

// backOnNode is the address that is put back before another version takes over.
const backOnNode = "10.1.0.3"

// A node has leases of host-local in the form of the plugin, a container runtime, and the
// folder of a program's state.
type node struct {
	*testing.T
	root    string
	runtime *critest.Runtime
	at      time.Time         // of all leases
	before  map[string]string // the leases
	files   int
}

// newNode returns a node without a state.
func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{T: t, root: t.TempDir(), runtime: critest.Start(t), at: time.Now().Add(-old)}
	n.put(fmt.Appendf(nil,
		`{"cniVersion":"1.0.0","name":"pods","plugins":[{"type":"host-local","ipam":{"type":"host-local","dataDir":%q,"ranges":[[{"subnet":"10.1.0.0/24"}]]}}]}`,
		n.path("networks")), "net.d", "pods.conflist")
	for network, all := range leases {
		for _, lease := range all {
			ip, pod, _ := strings.Cut(lease, " ")
			n.put([]byte(sandbox(pod)+"\r\neth0"), "networks", network, ip)
			if pod == "live" {
				n.runtime.Add(reaper.Sandbox{ID: sandbox(pod), Pod: reaper.PodRef{Namespace: "shop", Name: pod}, UID: "1", Ready: true})
			}
		}
	}
	n.age()
	n.before = n.leases()
	return n
}

// sandbox returns the ID of a pod's sandbox.
func sandbox(pod string) string {
	sum := sha256.Sum256([]byte(pod))
	return hex.EncodeToString(sum[:])
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

// age makes all leases old, and each as old as it was before.
func (n *node) age() {
	n.Helper()
	n.must(filepath.WalkDir(n.path("networks"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, n.at, n.at)
	}))
}

// put writes a file, in a folder that it makes.
func (n *node) put(text []byte, names ...string) {
	n.Helper()
	path := n.path(names...)
	n.must(os.MkdirAll(filepath.Dir(path), 0o700))
	n.must(os.WriteFile(path, text, 0o600))
}

// leases returns the content of all leases, by path. The program may make a lock.
func (n *node) leases() map[string]string {
	n.Helper()
	all := map[string]string{}
	n.must(fs.WalkDir(os.DirFS(n.path("networks")), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "lock" {
			return err
		}
		text, err := os.ReadFile(n.path("networks", path))
		all[path] = string(text)
		return err
	}))
	return all
}

// run has a program run a command of the node, under which what is dead is due after grace,
// and what was put back is held for hold. It has to exit with the code.
func (n *node) run(p program, code int, grace, hold time.Duration, args ...string) reap.Result {
	n.Helper()
	n.files++
	file := n.path(fmt.Sprintf("policy-%d.yaml", n.files))
	n.must(os.WriteFile(file, fmt.Appendf(nil, `apiVersion: ip-reaper/v1alpha1
kind: ReapPolicy
dryRun: false
gracePeriod: %s
minAge: 0s
limits: {maxFraction: 1}
journal: {restoreHold: %s}
backends:
  hostlocal: {dataDirs: [%q], confDir: %q, cacheDir: %q, binDirs: [%q], networks: [slow]}
`, grace, hold, n.path("networks"), n.path("net.d"), n.path("cache"), n.path("bin")), 0o600))
	result, err := p.reaper("").Run(n.Context(), append(append([]string{"node"}, args...),
		"--state-dir", n.path("state"), "--runtime-endpoint", n.runtime.Endpoint(), "--policy", file, "-o", "json")...)
	n.must(err)
	if result.ExitCode != code {
		n.Fatalf("%v: exit code %d, want %d\n%s%s", args, result.ExitCode, code, result.Stdout, result.Stderr)
	}
	return result
}

// look is run for a run that reports all.
func (n *node) look(p program, grace, hold time.Duration, args ...string) report {
	n.Helper()
	return reportOf(n, n.run(p, reap.ExitDone, grace, hold, append(args, "--all")...))
}

// ledger returns the ledger as it is stored. Its form is that of a cluster, uncompressed.
func (n *node) ledger() memory.Ledger {
	n.Helper()
	text, err := os.ReadFile(n.path("state", "ledger"))
	n.must(err)
	l, err := memory.Decode(memory.Zip(text))
	n.must(err)
	return l
}

// wantLeases fails the test unless the leases are what they were in the beginning.
func (n *node) wantLeases(when string) {
	n.Helper()
	if diff := cmp.Diff(n.before, n.leases()); diff != "" {
		n.Errorf("leases %s (-want +got):\n%s", when, diff)
	}
}

// ips returns the addresses of allocations.
func ips(all map[string]entry) map[string]bool {
	some := map[string]bool{}
	for _, e := range all {
		some[e.IP] = true
	}
	return some
}
