// Package cri asks the container runtime of a node, over its socket, which pod sandboxes
// exist. It only reads.
package cri

import (
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

// The places, besides a flag, that may name the endpoint.
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
	return finder{Sockets(), DefaultConfig}.find(flag, env, config)
}

// A finder has the places to look if none is named.
type finder struct {
	sockets []string
	config  string
}

func (f finder) find(flag string, env func(string) string, config string) (string, error) {
	if flag != "" {
		return checked(flag, "--runtime-endpoint")
	}
	if named := env(EndpointVariable); named != "" {
		return checked(named, EndpointVariable)
	}
	path := config
	if path == "" {
		path = f.config
	}
	named, err := fromConfig(path)
	switch {
	case config == "" && errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", ipam.BadInput(fmt.Errorf("the configuration of crictl: %w", err), "name the runtime with --runtime-endpoint")
	case named != "":
		return checked(named, "runtime-endpoint in "+path)
	}
	return f.only()
}

// only returns the only one of the default sockets that exists.
func (f finder) only() (string, error) {
	var found []string
	for _, path := range f.sockets {
		if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			found = append(found, path)
		}
	}
	switch len(found) {
	case 1:
		return "unix://" + found[0], nil
	case 0:
		return "", ipam.BadInput(fmt.Errorf("no container runtime was found: none of %s exists", strings.Join(f.sockets, ", ")),
			"name the socket of the kubelet's runtime with --runtime-endpoint")
	}
	return "", ipam.BadInput(fmt.Errorf("several container runtimes may be on this node: %s", strings.Join(found, ", ")),
		"name that of the kubelet with --runtime-endpoint unix://"+found[0])
}

// checked returns an endpoint if Open accepts it. where names its place.
func checked(endpoint, where string) (string, error) {
	path, err := socketOf(endpoint)
	if err != nil {
		return "", ipam.BadInput(fmt.Errorf("%s: %w", where, err), "give a socket, such as unix:///run/containerd/containerd.sock")
	}
	return "unix://" + path, nil
}

// socketOf returns the socket path of an endpoint: unix:///path, or just a path.
func socketOf(endpoint string) (string, error) {
	path, isUnix := strings.CutPrefix(endpoint, "unix:")
	path = strings.TrimPrefix(path, "//")
	if u, err := url.Parse(endpoint); !isUnix && err == nil && u.Scheme != "" {
		return "", fmt.Errorf("%.200q: only unix sockets can be used, because the answer decides about releases", endpoint)
	}
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%.200q is not the absolute path of a socket", endpoint)
	}
	return filepath.Clean(path), nil
}

// fromConfig returns the runtime-endpoint of a crictl configuration; empty if it has none.
func fromConfig(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")}
	case info.Size() > maxConfig:
		return "", &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has more than %d bytes", maxConfig)}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var config struct {
		RuntimeEndpoint string `json:"runtime-endpoint"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return "", &fs.PathError{Op: "read", Path: path, Err: err}
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

// Open connects to the container runtime at an endpoint, and asks it for its version, so that a
// wrong endpoint is reported before a run begins. If the socket does not exist or cannot be
// used, the error is an *ipam.InputError. The caller must Close the client.
func Open(ctx context.Context, endpoint string) (*Client, error) {
	path, err := socketOf(endpoint)
	if err != nil {
		return nil, ipam.BadInput(err, "give a socket, such as unix:///run/containerd/containerd.sock")
	}
	if err := checkSocket(ctx, path); err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	conn, err := grpc.NewClient("passthrough:///"+path, grpc.WithContextDialer(dial), grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("container runtime at %s: %w", endpoint, err)
	}
	c := &Client{"unix://" + path, requestTimeout, conn, runtimeapi.NewRuntimeServiceClient(conn)}
	timed, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := c.api.Version(timed, &runtimeapi.VersionRequest{}); err != nil {
		return nil, errors.Join(c.failed(ctx, "Version", err), conn.Close())
	}
	return c, nil
}

// checkSocket returns an error unless a program listens on a socket.
func checkSocket(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		err = &fs.PathError{Op: "connect", Path: path, Err: errors.New("it is not a socket")}
	}
	if err == nil {
		var conn net.Conn
		if conn, err = new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
			return conn.Close()
		}
	}
	hint := "name the socket of the kubelet's runtime with --runtime-endpoint, or start the runtime"
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
		return nil, c.failed(ctx, "ListPodSandbox", err)
	}
	sandboxes := make([]census.Sandbox, 0, len(answer.GetItems()))
	seen := make(map[string]bool, len(answer.GetItems()))
	for _, s := range answer.GetItems() {
		switch id := s.GetId(); {
		case id == "":
			return nil, c.nonsense("a sandbox without an ID")
		case seen[id]:
			return nil, c.nonsense(fmt.Sprintf("the sandbox %.80q twice", id))
		}
		seen[s.GetId()] = true
		pod := s.GetMetadata()
		sandboxes = append(sandboxes, census.Sandbox{
			ID: s.GetId(), Pod: ipam.PodRef{Namespace: pod.GetNamespace(), Name: pod.GetName()}, UID: pod.GetUid(),
			Ready: s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY,
		})
	}
	return sandboxes, nil
}

// nonsense returns the error for a list with an impossible item.
func (c *Client) nonsense(what string) error {
	return fmt.Errorf("container runtime at %s: its list of sandboxes has %s: %w", c.endpoint, what, ipam.ErrRefused)
}

// failed returns the error for a request. ctx is the caller's.
func (c *Client) failed(ctx context.Context, request string, err error) error {
	text, causes := status.Convert(err).Message(), []error{err}
	switch status.Code(err) {
	case codes.Unimplemented:
		text, causes = "it does not serve version 1 of the CRI; enable that, or name another runtime: "+text, append(causes, ipam.ErrRefused)
	case codes.ResourceExhausted:
		text, causes = fmt.Sprintf("an answer may have at most %d MiB: %s", maxAnswer>>20, text), append(causes, ipam.ErrRefused)
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
		causes = append(causes, ipam.ErrRefused)
	default: // the runtime may answer next time
	}
	if ctx.Err() != nil {
		text, causes = context.Cause(ctx).Error(), append(causes, ctx.Err(), context.Cause(ctx))
	}
	return ipam.Worded(fmt.Sprintf("container runtime at %s: %s: %s", c.endpoint, request, text), causes...)
}
