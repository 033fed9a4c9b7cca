// Package plugin runs the real whereabouts CNI plugin as a container runtime
// would: the program itself, its environment, its standard input. It needs no
// root and makes no network interface, since whereabouts only manages
// addresses.
//
// One ADD takes about a tenth of a second, even if many run at a time: they wait for each other's
// lease, so running them in parallel makes contention and saves nothing.
package plugin

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// A Pod is the pod whose interface is added.
type Pod struct{ Namespace, Name string }

// A Plugin is the plugin on a node. Its methods may be called concurrently.
type Plugin struct {
	binary, kubeconfig string
	flatFile, logFile  string
}

// New returns the plugin, which keeps its files in dir and allocates in the cluster and namespace
// of the kubeconfig's current context.
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

// Add asks for addresses for the pod's interface and returns one for each of the network's ranges.
// The container ID is the sandbox's: a new sandbox needs one that the pod has not used before. A
// failure that the plugin reports is an *Error.
func (p *Plugin) Add(ctx context.Context, n Network, pod Pod, containerID, ifname string) ([]netip.Addr, error) {
	call, err := p.call(n, pod, containerID, ifname)
	if err != nil {
		return nil, err
	}
	return call.Add(ctx)
}

// Del gives the addresses of the sandbox's interface back. The plugin always reports success, so
// nil means only that it has ended.
func (p *Plugin) Del(ctx context.Context, n Network, pod Pod, containerID, ifname string) error {
	call, err := p.call(n, pod, containerID, ifname)
	if err != nil {
		return err
	}
	return call.Del(ctx)
}

func (p *Plugin) call(n Network, pod Pod, containerID, ifname string) (Call, error) {
	config, err := n.config(p.kubeconfig, p.flatFile, p.logFile)
	call := Call{Binary: p.binary, Pod: pod, ContainerID: containerID, Interface: ifname, Config: config}
	if n.Node != "" {
		call.Env = []string{"NODENAME=" + n.Node}
	}
	return call, err
}
