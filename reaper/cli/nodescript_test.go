package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/cri/critest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/node"
)

// The commands of scripts about a node are:
//
//	onnode                          commands use the folders state, data and conf, and the policy
//	                                policy.yaml, to which the script may add lines
//	lease ADDRESS ID AGE            data has a lease of this age
//	[!] sandbox ID [NAMESPACE/NAME] the container runtime has this sandbox, or with one more word
//	                                has it and says that it is not ready
//	locked                          another run holds the lock of state

type runtimeKey struct{}

// The sandboxes of the scripts.
const (
	liveSandbox = "1e88fb5dec7c1e88fb5dec7c1e88fb5dec7c1e88fb5dec7c1e88fb5dec7c1234"
	newSandbox  = "5c1e9f0a22d75c1e9f0a22d75c1e9f0a22d75c1e9f0a22d75c1e9f0a22d71234"
	deadSandbox = "3484a0e163813484a0e163813484a0e163813484a0e163813484a0e163811234"
)

// addRuntime adds a container runtime to a script.
func addRuntime(t *testing.T, env *testscript.Env) {
	runtime := critest.Start(t)
	env.Values[runtimeKey{}] = runtime
	env.Setenv("RUNTIME", runtime.Endpoint())
	env.Setenv("LIVE", liveSandbox)
	env.Setenv("DEAD", deadSandbox)
	env.Setenv("NEW", newSandbox)
}

// leasesIn makes the files of a node with one network of host-local.
func leasesIn(work string) error {
	conf := `{"cniVersion": "1.0.0", "name": "cbr0", "plugins": [{"type": "bridge",
		"ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": "10.1.0.0/24"}]]}}]}`
	policy := "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ngracePeriod: 0s\nbackends:\n  hostlocal:\n" +
		"    {dataDirs: [%[1]s/data], confDir: %[1]s/conf, cacheDir: %[1]s/cache, binDirs: [%[1]s/bin]}\n"
	return errors.Join(
		os.MkdirAll(filepath.Join(work, "data", "cbr0"), 0o755), os.Mkdir(filepath.Join(work, "conf"), 0o755),
		os.WriteFile(filepath.Join(work, "conf", "10-cbr0.conflist"), fmt.Appendf(nil, conf, filepath.Join(work, "data")), 0o600),
		os.WriteFile(filepath.Join(work, "policy.yaml"), fmt.Appendf(nil, policy, work), 0o600),
	)
}

// leaseIn makes a lease of that age.
func leaseIn(work, address, sandbox string, age time.Duration) error {
	file := filepath.Join(work, "data", "cbr0", address)
	at := time.Now().Add(-age)
	return errors.Join(os.WriteFile(file, []byte(sandbox+"\r\neth0"), 0o600), os.Chtimes(file, at, at))
}

// onNode makes the folders and the variables of a node.
func onNode(ts *testscript.TestScript, _ bool, _ []string) {
	work := ts.Getenv("WORK")
	ts.Check(leasesIn(work))
	ts.Setenv("IP_REAPER_NODE_NAME", "node-a")
	ts.Setenv("IP_REAPER_POLICY", filepath.Join(work, "policy.yaml"))
	ts.Setenv("IP_REAPER_RUNTIME_ENDPOINT", ts.Getenv("RUNTIME"))
	ts.Setenv("IP_REAPER_STATE_DIR", filepath.Join(work, "state"))
}

// lease adds a lease.
func lease(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: lease ADDRESS ID AGE")
	}
	age, err := time.ParseDuration(args[2])
	ts.Check(err)
	ts.Check(leaseIn(ts.Getenv("WORK"), args[0], args[1], age))
}

// sandbox adds a sandbox to the container runtime, or with a ! removes it.
func sandbox(ts *testscript.TestScript, neg bool, args []string) {
	runtime, ok := ts.Value(runtimeKey{}).(*critest.Runtime)
	switch {
	case !ok || len(args) == 0 || !neg && len(args) < 2:
		ts.Fatalf("usage: [!] sandbox ID [NAMESPACE/NAME [stopped]]")
	case neg:
		runtime.Remove(args...)
	default:
		namespace, name, _ := strings.Cut(args[1], "/")
		runtime.Add(census.Sandbox{ID: args[0], Pod: ipam.PodRef{Namespace: namespace, Name: name}, UID: "u-" + name, Ready: len(args) == 2})
	}
}

// locked takes the lock of the node until the script ends.
func locked(ts *testscript.TestScript, _ bool, _ []string) {
	release, err := node.NewFolder(ts.MkAbs("state")).Lock().Acquire(context.Background(), "run-1")
	ts.Check(err)
	ts.Defer(release)
}
