// Package plugin runs the real whereabouts CNI plugin as a container runtime
// would: the program itself, its environment, its standard input. It needs no
// root and makes no network interface, since whereabouts only manages
// addresses.
//
// One ADD takes about a tenth of a second, and as long when many run at a time:
// they wait for each other's lease, so that running them in parallel makes
// contention and saves nothing.
package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/assets"
)

// commandTimeout ends a plugin that hangs. Its own limit is two minutes for an
// ADD, of which ten seconds are for the stores.
const commandTimeout = 2*time.Minute + 10*time.Second

// A Pod is whose interface is added.
type Pod struct{ Namespace, Name string }

// An Error is what the plugin said when it did not do what it was asked.
type Error struct {
	Command string // ADD or DEL
	Pod     Pod
	Code    int    `json:"code"` // as CNI defines it
	Msg     string `json:"msg"`
	Details string `json:"details"`
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s %s/%s: %s", e.Command, e.Pod.Namespace, e.Pod.Name, e.Msg)
	if e.Details != "" {
		text += "; " + e.Details
	}
	return text
}

// A Plugin is the plugin on a node. Its methods may be called concurrently.
type Plugin struct {
	binary, kubeconfig string
	flatFile, logFile  string
}

// New returns the plugin, which keeps its files in dir and allocates in the
// cluster and the namespace of the kubeconfig's current context.
func New(dir, kubeconfig string) (*Plugin, error) {
	binary, err := assets.Path("whereabouts")
	if err != nil {
		return nil, err
	}
	dir, err = os.MkdirTemp(dir, "whereabouts-")
	if err != nil {
		return nil, err
	}
	p := &Plugin{
		binary:     binary,
		kubeconfig: kubeconfig,
		flatFile:   filepath.Join(dir, "whereabouts.conf"),
		logFile:    filepath.Join(dir, "whereabouts.log"),
	}
	// The plugin insists on a configuration file besides its input.
	return p, os.WriteFile(p.flatFile, []byte("{}\n"), 0o600)
}

// Add asks for addresses for the pod's interface and returns one for each of
// the network's ranges. The container ID is the sandbox's: one that the pod
// has not used before for a new sandbox. An answer of the plugin that is not a
// success is an *Error.
func (p *Plugin) Add(ctx context.Context, n Network, pod Pod, containerID, ifname string) ([]netip.Addr, error) {
	out, err := p.run(ctx, "ADD", n, pod, containerID, ifname)
	if err != nil {
		return nil, err
	}
	var result struct {
		IPs []struct {
			Address netip.Prefix `json:"address"`
		} `json:"ips"`
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return nil, fmt.Errorf("ADD %s/%s: decode result: %w", pod.Namespace, pod.Name, err)
	}
	var addrs []netip.Addr
	for _, ip := range result.IPs {
		addrs = append(addrs, ip.Address.Addr())
	}
	return addrs, nil
}

// Del gives the addresses of the sandbox's interface back. The plugin reports
// success whatever became of it, so nil says only that it has ended.
func (p *Plugin) Del(ctx context.Context, n Network, pod Pod, containerID, ifname string) error {
	_, err := p.run(ctx, "DEL", n, pod, containerID, ifname)
	return err
}

func (p *Plugin) run(ctx context.Context, command string, n Network, pod Pod, containerID, ifname string) ([]byte, error) {
	config, err := n.config(p.kubeconfig, p.flatFile, p.logFile)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.binary)
	cmd.Env = []string{
		"CNI_COMMAND=" + command,
		"CNI_CONTAINERID=" + containerID,
		"CNI_NETNS=/var/run/netns/none", // any but ours; it is not entered
		"CNI_IFNAME=" + ifname,
		"CNI_PATH=" + filepath.Dir(p.binary),
		fmt.Sprintf("CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=%s",
			pod.Namespace, pod.Name, containerID),
	}
	if n.Node != "" {
		cmd.Env = append(cmd.Env, "NODENAME="+n.Node)
	}
	cmd.Stdin = bytes.NewReader(config)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", command, pod.Namespace, pod.Name, ctx.Err())
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		answer := &Error{Command: command, Pod: pod}
		if json.Unmarshal(out, answer) == nil && answer.Msg != "" {
			return nil, answer
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w: %s", command, pod.Namespace, pod.Name, err, stderr.Bytes())
	}
	return out, nil
}
