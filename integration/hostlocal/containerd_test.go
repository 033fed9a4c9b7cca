package hostlocal_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// realCache is the folder of libcni's cache. No containerd can be configured to use another.
const realCache = "/var/lib/cni"

// A containerd is a node with its own container runtime, whose sandboxes run and get their
// addresses from ptp and host-local.
type containerd struct {
	*world
	bin  string // the folder of containerd and ctr
	proc *exec.Cmd
	api  runtimeapi.RuntimeServiceClient
	made []ipam.Owner
}

// newContainerd starts the containerd of a folder on a node whose pods are in a subnet. With
// multus, its network is Multus, which delegates to the pods' network.
func newContainerd(t *testing.T, bin, subnet string, multus bool) *containerd {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(root, "kind", "build")
	n := newNode(t, span{Subnet: subnet})
	n.found = filepath.Join(built, "cni")
	c := &containerd{world: &world{node: n, state: n.path(stateDir), endpoint: "unix://" + n.path("c.sock")}, bin: bin}
	n.must(os.Remove(n.path(cacheDir)))
	n.must(os.Symlink(realCache, n.path(cacheDir)))
	list := strings.Replace(string(n.config(pods)), `"type":"host-local"}]`, `"type":"ptp"}]`, 1)
	if multus {
		list = `{"cniVersion": "1.0.0", "name": "multus-cni-network", "plugins": [{"type": "multus", "delegates": [` + list + `]}]}`
	}
	n.must(os.WriteFile(n.path(confDir, "10-pods.conflist"), []byte(list), 0o600))
	// NRI has one socket for the whole machine. The monitor that restarts containers is not needed,
	// and was the last thing that a containerd 2 logged which did not come up.
	n.must(os.WriteFile(n.path("config.toml"), fmt.Appendf(nil, `version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.internal.v1.restart", "io.containerd.monitor.container.v1.restart"]
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "ip-reaper/pause:e2e"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = %q
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
`, n.path("root"), n.path("run"), n.path("c.sock"), filepath.Join(built, "bin", "runc-bounded"), n.found, n.path(confDir)), 0o600))
	conn, err := grpc.NewClient(c.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, MaxDelay: 50 * time.Millisecond}}))
	n.must(err)
	c.api = runtimeapi.NewRuntimeServiceClient(conn)
	t.Cleanup(func() { c.must(conn.Close()) })
	t.Cleanup(c.clean)
	c.start()
	c.importPause(filepath.Join(built, "bin", "pause"))
	return c
}

// start starts containerd, and waits until it lists sandboxes.
func (c *containerd) start() {
	c.Helper()
	log, err := os.OpenFile(c.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	c.must(err)
	defer func() { c.must(log.Close()) }()
	c.proc = exec.Command(filepath.Join(c.bin, "containerd"), "--config", c.path("config.toml"))
	c.proc.Env = append(os.Environ(), "PATH="+c.bin+":"+os.Getenv("PATH"))
	c.proc.Stdout, c.proc.Stderr = log, log
	c.must(c.proc.Start())
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	for {
		status, err := c.api.Status(ctx, &runtimeapi.StatusRequest{})
		ready := slices.ContainsFunc(status.GetStatus().GetConditions(), func(one *runtimeapi.RuntimeCondition) bool {
			return one.Type == runtimeapi.NetworkReady && one.Status
		})
		if err == nil && ready {
			return
		}
		if ctx.Err() != nil {
			text, _ := os.ReadFile(c.path("log"))
			c.Fatalf("containerd does not answer: %v\n%s", err, text)
		}
		time.Sleep(20 * time.Millisecond) // before the next attempt
	}
}

// kill kills containerd. What it has started keeps running.
func (c *containerd) kill() {
	c.must(c.proc.Process.Kill())
	_ = c.proc.Wait()
}

// ctr calls containerd's own client.
func (c *containerd) ctr(args ...string) (string, error) {
	out, err := exec.Command(filepath.Join(c.bin, "ctr"), append([]string{"--address", c.path("c.sock"), "--namespace", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// importPause imports into containerd an image with the program that a sandbox runs.
func (c *containerd) importPause(program string) {
	c.Helper()
	pause, err := os.ReadFile(program)
	c.must(err)
	layer := c.tar(map[string][]byte{"pause": pause})
	config := fmt.Appendf(nil, `{"architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/pause"]},
		"rootfs": {"type": "layers", "diff_ids": ["sha256:%x"]}}`, sha256.Sum256(layer))
	manifest := []byte(`[{"Config": "config.json", "RepoTags": ["docker.io/ip-reaper/pause:e2e"], "Layers": ["layer.tar"]}]`)
	image := c.path("pause.tar")
	c.must(os.WriteFile(image, c.tar(map[string][]byte{"layer.tar": layer, "config.json": config, "manifest.json": manifest}), 0o600))
	_, err = c.ctr("images", "import", image)
	c.must(err)
}

// tar returns a tar of files.
func (c *containerd) tar(files map[string][]byte) []byte {
	c.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, content := range files {
		c.must(w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}))
		_, err := w.Write(content)
		c.must(err)
	}
	c.must(w.Close())
	return out.Bytes()
}

// started runs the sandbox of a pod, like the kubelet, and makes its lease old. It returns the
// sandbox and the name of the lease.
func (c *containerd) started(pod string) (of ipam.Owner, lease string) {
	c.Helper()
	of = sandbox(pod)
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	answer, err := c.api.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: of.Pod.Name, Namespace: of.Pod.Namespace, Uid: of.UID},
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Ipc: runtimeapi.NamespaceMode_NODE}, // without its own mount
		}},
	}})
	if err != nil {
		text, _ := os.ReadFile(c.path("log"))
		c.Fatalf("run the sandbox of %s: %v\n%s", pod, err, text)
	}
	of.Sandbox = answer.PodSandboxId
	c.made = append(c.made, of)
	names := c.left(pods, of)
	if len(names) != 1 {
		c.Fatalf("the leases of %s are %v, want one", pod, names)
	}
	at := time.Now().Add(-dead)
	for _, file := range append(c.entries(of), c.lease(pods, names[0])) {
		c.must(os.Chtimes(file, at, at))
	}
	return of, names[0]
}

// entries returns the files of libcni and of Multus for a sandbox.
func (c *containerd) entries(of ipam.Owner) []string {
	var all []string
	for _, pattern := range []string{"results/*-" + of.Sandbox + "-*", "multus/results/*-" + of.Sandbox + "-*", "multus/" + of.Sandbox} {
		files, err := filepath.Glob(filepath.Join(realCache, pattern))
		c.must(err)
		all = append(all, files...)
	}
	return all
}

// listed reports whether containerd lists a sandbox.
func (c *containerd) listed(of ipam.Owner) bool {
	c.Helper()
	answer, err := c.api.ListPodSandbox(c.Context(), &runtimeapi.ListPodSandboxRequest{})
	c.must(err)
	return slices.ContainsFunc(answer.Items, func(one *runtimeapi.PodSandbox) bool { return one.Id == of.Sandbox })
}

// lose damages what containerd has stored about a sandbox, and restarts containerd: it does not
// list the sandbox, which keeps running. containerd 2.3 has a second record, from which it would
// list it.
func (c *containerd) lose(of ipam.Owner) {
	c.Helper()
	_, err := c.ctr("containers", "label", of.Sandbox, "io.cri-containerd.kind=")
	c.must(err)
	c.kill()
	c.start()
	if c.listed(of) {
		_, err := c.ctr("sandboxes", "rm", "--force", of.Sandbox)
		c.must(err)
		c.kill()
		c.start()
	}
	if c.listed(of) || !c.alive(of) {
		c.Fatalf("containerd lists it: %v, and it runs: %v", c.listed(of), c.alive(of))
	}
}

// alive reports whether a sandbox's process runs.
func (c *containerd) alive(of ipam.Owner) bool {
	c.Helper()
	tasks, err := c.ctr("tasks", "ls")
	c.must(err)
	return regexp.MustCompile(of.Sandbox + `\s+\d+\s+RUNNING`).MatchString(tasks)
}

var netns = regexp.MustCompile(`/var/run/netns/cni-[0-9a-f-]+`)

// end ends a sandbox and its network namespace, without a DEL.
func (c *containerd) end(of ipam.Owner) {
	c.Helper()
	if _, err := c.ctr("tasks", "rm", "--force", of.Sandbox); c.alive(of) {
		c.Fatal(err)
	}
	for _, file := range c.entries(of) {
		text, err := os.ReadFile(file)
		c.must(err)
		if path := string(netns.Find(text)); path != "" && syscall.Unmount(path, syscall.MNT_DETACH) == nil {
			c.must(os.Remove(path))
		}
	}
}

// clean ends what the test started, and removes what it leaves outside its folder.
func (c *containerd) clean() {
	for _, of := range c.made {
		c.end(of)
		_, err := c.ctr("containers", "rm", of.Sandbox)
		c.must(err)
		for _, file := range c.entries(of) {
			c.must(os.Remove(file))
		}
	}
	c.kill()
}
