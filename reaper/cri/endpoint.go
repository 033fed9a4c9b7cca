// Package cri asks the container runtime of a node, over its socket, which pod sandboxes
// exist. It only reads.
package cri

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

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
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxConfig+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxConfig:
		return "", &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has more than %d bytes", maxConfig)}
	}
	var config struct {
		RuntimeEndpoint string `json:"runtime-endpoint"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return "", &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return config.RuntimeEndpoint, nil
}
