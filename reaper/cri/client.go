// Package cri asks the container runtime of a node, over its socket, which pod sandboxes
// exist. It only reads.
package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The variable and the file that may name the endpoint, besides a flag.
const (
	EndpointVariable = "CONTAINER_RUNTIME_ENDPOINT"
	DefaultConfig    = "/etc/crictl.yaml"
)

// maxConfig is the largest crictl configuration that is read, in bytes. It has a few lines.
const maxConfig = 64 << 10

// Sockets returns the sockets to try if no endpoint is named: those that crictl tries, and
// those of the containerd in k3s and RKE2, k0s, and microk8s.
func Sockets() []string {
	return []string{
		"/run/containerd/containerd.sock", "/run/crio/crio.sock", "/var/run/cri-dockerd.sock",
		"/run/k3s/containerd/containerd.sock", "/run/k0s/containerd.sock", "/var/snap/microk8s/common/run/containerd.sock",
	}
}

// Endpoint returns the endpoint of the node's container runtime, such as
// unix:///run/containerd/containerd.sock. It takes the first that is set of the flag,
// EndpointVariable, and the runtime-endpoint of a crictl configuration. An empty config means
// DefaultConfig, which need not exist.
//
// If none is set, it takes the only one of Sockets that exists. crictl takes the first one. But
// the sandboxes of one runtime say nothing about those of another, so having several is an
// error. Every error is an *ipam.InputError.
func Endpoint(flag string, env func(string) string, config string) (string, error) {
	return findEndpoint(flag, env, config, DefaultConfig, Sockets())
}

// findEndpoint is Endpoint with other places to look if none is named.
func findEndpoint(flag string, env func(string) string, config, defaultConfig string, sockets []string) (string, error) {
	if flag != "" {
		return parseEndpoint(flag, "--runtime-endpoint")
	}
	if named := env(EndpointVariable); named != "" {
		return parseEndpoint(named, EndpointVariable)
	}
	path := cmp.Or(config, defaultConfig)
	named, err := readConfig(path)
	switch {
	case config == "" && errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", ipam.BadInput(fmt.Errorf("the configuration of crictl: %w", err), "name the runtime with --runtime-endpoint")
	case named != "":
		return parseEndpoint(named, "runtime-endpoint in "+path)
	}
	return onlySocket(sockets)
}

// onlySocket returns the endpoint of the only socket that exists.
func onlySocket(sockets []string) (string, error) {
	var found []string
	for _, path := range sockets {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			found = append(found, path)
		}
	}
	switch len(found) {
	case 1:
		return "unix://" + found[0], nil
	case 0:
		return "", ipam.BadInput(fmt.Errorf("no container runtime was found: none of %s exists", strings.Join(sockets, ", ")), nameSocket)
	}
	return "", ipam.BadInput(fmt.Errorf("several container runtimes may be on this node: %s", strings.Join(found, ", ")),
		"name that of the kubelet with --runtime-endpoint unix://"+found[0])
}

// nameSocket is the hint if the socket of the runtime is not known, or is that of another one.
const nameSocket = "name the socket of the kubelet's runtime with --runtime-endpoint"

// parseEndpoint returns an endpoint as unix:///path. It may also be just a path. source says
// who named it.
func parseEndpoint(endpoint, source string) (string, error) {
	path, isUnix := strings.CutPrefix(endpoint, "unix:")
	path = strings.TrimPrefix(path, "//")
	var mistake string
	switch {
	case !isUnix && strings.Contains(endpoint, "://"):
		mistake = ": only unix sockets can be used, because the answer decides about releases"
	case !filepath.IsAbs(path) || strings.ContainsRune(path, 0):
		mistake = " is not the absolute path of a socket"
	default:
		return "unix://" + filepath.Clean(path), nil
	}
	return "", ipam.BadInput(fmt.Errorf("%s: %.200q%s", source, endpoint, mistake), "give a socket, such as unix:///run/containerd/containerd.sock")
}

// readConfig returns the runtime-endpoint of a crictl configuration; empty if it has none.
func readConfig(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("read %s: it is not a regular file", path)
	case info.Size() > maxConfig:
		return "", fmt.Errorf("read %s: it has more than %d bytes", path, maxConfig)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var config struct {
		RuntimeEndpoint string `json:"runtime-endpoint"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return config.RuntimeEndpoint, nil
}

const (
	// maxAnswer is the largest answer that is read, in bytes, as in the kubelet. containerd and
	// CRI-O send no larger one. A sandbox has one to four KiB, so this is more than 4000
	// sandboxes; a larger answer is an error, never cut.
	maxAnswer = 16 << 20

	// requestTimeout ends a request that hangs. The caller may allow less.
	requestTimeout = 30 * time.Second
)

// A Client asks one container runtime. It is safe for concurrent use.
type Client struct {
	endpoint string
	timeout  time.Duration // of each request
	conn     *grpc.ClientConn
	api      runtimeapi.RuntimeServiceClient
}

// Open connects to the container runtime at an endpoint that Endpoint returned, and asks it for
// its version, so that a wrong endpoint is reported before a run begins. If the socket does not
// exist or cannot be used, the error is an *ipam.InputError. The caller must Close the client.
func Open(ctx context.Context, endpoint string) (*Client, error) {
	path := strings.TrimPrefix(endpoint, "unix://")
	if err := checkSocket(ctx, path); err != nil {
		return nil, err
	}
	target := url.URL{Scheme: "unix", Path: path}
	conn, err := grpc.NewClient(target.String(),
		grpc.WithNoProxy(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("container runtime at %s: %w", endpoint, err)
	}
	c := &Client{endpoint, requestTimeout, conn, runtimeapi.NewRuntimeServiceClient(conn)}
	timed, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := c.api.Version(timed, &runtimeapi.VersionRequest{}); err != nil {
		return nil, errors.Join(c.requestError(ctx, "Version", err), conn.Close())
	}
	return c, nil
}

// checkSocket returns an error unless a program listens on a socket.
func checkSocket(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		err = fmt.Errorf("connect %s: it is not a socket", path)
	}
	var conn net.Conn
	if err == nil {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", path)
	}
	if err == nil {
		return conn.Close()
	}
	hint := nameSocket + ", or start the runtime"
	if errors.Is(err, fs.ErrPermission) {
		hint = "run as root: the socket of a container runtime is for root only"
	}
	return ipam.BadInput(fmt.Errorf("container runtime: %w", err), hint)
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Endpoint returns the endpoint, for a report.
func (c *Client) Endpoint() string { return c.endpoint }

// Sandboxes lists every pod sandbox that the runtime has, in any state: a sandbox that is not
// ready still has its addresses. The list is complete, or Sandboxes returns an error. If a
// second request would fail in the same way, the error wraps ipam.ErrRefused.
func (c *Client) Sandboxes(ctx context.Context) ([]census.Sandbox, error) {
	timed, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := c.api.ListPodSandbox(timed, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, c.requestError(ctx, "ListPodSandbox", err)
	}
	items := answer.GetItems()
	sandboxes := make([]census.Sandbox, 0, len(items))
	seen := make(map[string]bool, len(items))
	for _, s := range items {
		id := s.GetId()
		switch {
		case id == "":
			return nil, c.invalidList("a sandbox without an ID")
		case seen[id]:
			return nil, c.invalidList(fmt.Sprintf("the sandbox %.80q twice", id))
		}
		seen[id] = true
		pod := s.GetMetadata()
		sandboxes = append(sandboxes, census.Sandbox{
			ID:    id,
			Pod:   ipam.PodRef{Namespace: pod.GetNamespace(), Name: pod.GetName()},
			UID:   pod.GetUid(),
			Ready: s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY,
		})
	}
	return sandboxes, nil
}

// invalidList returns the error for a list of sandboxes with an impossible item.
func (c *Client) invalidList(item string) error {
	return fmt.Errorf("container runtime at %s: its list of sandboxes has %s: %w", c.endpoint, item, ipam.ErrRefused)
}

// requestError returns the error of a request that failed. ctx is the caller's.
func (c *Client) requestError(ctx context.Context, request string, err error) error {
	text := status.Convert(err).Message()
	refused := ipam.ErrRefused
	switch status.Code(err) {
	case codes.Unimplemented:
		text = "it does not serve version 1 of the CRI; enable that, or name another runtime: " + text
	case codes.ResourceExhausted:
		text = fmt.Sprintf("an answer may have at most %d MiB: %s", maxAnswer>>20, text)
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
	default:
		refused = nil // the runtime may answer next time
	}
	cause := context.Cause(ctx)
	if cause != nil {
		text = cause.Error()
	}
	return ipam.Worded(fmt.Sprintf("container runtime at %s: %s: %s", c.endpoint, request, text), err, refused, ctx.Err(), cause)
}
