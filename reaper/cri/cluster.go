package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Cluster returns a cluster as seen from one node: the sandboxes of the node's container
// runtime, and what an API server has. pods may be nil: a node that has lost its API server
// needs addresses too.
//
// Without an API server, every list of objects is empty: no pod shows an address, so that only
// the runtime keeps one. The lists say nothing about what exists. They are for allocations with
// ipam.Allocation.ByRuntime, which no rule gives up because an object is missing. A single pod
// is Unknown, which keeps its addresses.
//
// self is the UID of the pod in which the program runs; empty if it runs in none. A runtime
// without the sandbox of that pod is not the kubelet's, and an API server that has no pod of
// any sandbox was asked for another node: then the list of sandboxes fails. It also fails if
// neither a pod nor an API server vouches for the runtime, and the runtime has no sandbox of
// any pod in kubelets, folders such as KubeletPods returns.
//
// attached reads the attachments of sandboxes, as ipam.Attacher does; nil if nothing does.
func Cluster(runtime *Client, pods census.Cluster, self string, kubelets []string, attached Attached) census.Runtime {
	alone := pods == nil
	if alone {
		pods = noServer{}
	}
	return &node{
		Cluster:  pods,
		alone:    alone,
		client:   runtime,
		self:     self,
		kubelets: kubelets,
		attached: attached,
	}
}

// Attached is the method of ipam.Attacher.
type Attached func(ctx context.Context, sandboxes []string) ([]ipam.Attachment, error)

// A node is a cluster with the sandboxes of one node.
type node struct {
	census.Cluster
	alone    bool // without an API server
	client   *Client
	self     string
	kubelets []string
	attached Attached

	mu        sync.Mutex
	unclaimed string          // see Unclaimed
	listed    map[string]bool // names and UIDs of the pods, as last listed; nil without an API server
}

// Pods implements census.Cluster.
func (n *node) Pods(ctx context.Context) ([]census.Pod, error) {
	pods, err := n.Cluster.Pods(ctx)
	if err != nil || n.alone {
		return pods, err
	}
	listed := make(map[string]bool, 2*len(pods))
	for _, p := range pods {
		listed[p.Ref.String()] = true
		listed[p.UID] = true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listed = listed
	return pods, nil
}

// Sandboxes implements census.Runtime.
func (n *node) Sandboxes(ctx context.Context) ([]census.Sandbox, error) {
	sandboxes, err := n.client.Sandboxes(ctx)
	if err != nil {
		return nil, err
	}
	isSelf := func(s census.Sandbox) bool { return s.UID == n.self }
	if n.self != "" && !slices.ContainsFunc(sandboxes, isSelf) {
		return nil, ipam.BadInput(fmt.Errorf("container runtime at %s: it does not have the sandbox of this pod, whose UID is %s", n.client.endpoint, n.self), nameSocket)
	}
	if n.alone && n.self == "" {
		if err := n.checkKubelet(sandboxes); err != nil {
			return nil, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	known := func(s census.Sandbox) bool { return n.listed[s.Pod.String()] || s.UID != "" && n.listed[s.UID] }
	if n.listed != nil && len(sandboxes) > 0 && !slices.ContainsFunc(sandboxes, known) {
		return nil, ipam.BadInput(errors.New("the API server has no pod of any sandbox of this node"),
			"give the name that the API server has for this node with --node-name, and check that it is the right API server")
	}
	return sandboxes, n.attach(ctx, sandboxes)
}

// attach adds their attachments to sandboxes, under the lock. The runtime listed them before: an ADD writes its entry
// before the runtime has the sandbox.
func (n *node) attach(ctx context.Context, sandboxes []census.Sandbox) error {
	if n.attached == nil {
		return nil
	}
	ids := make([]string, len(sandboxes))
	index := make(map[string]int, len(sandboxes))
	for i, s := range sandboxes {
		ids[i] = s.ID
		index[s.ID] = i
	}
	all, err := n.attached(ctx, ids)
	n.unclaimed = ""
	switch {
	case errors.Is(err, ipam.ErrNotInstalled):
		n.unclaimed = err.Error()
		return nil
	case err != nil:
		return fmt.Errorf("what their sandboxes have: %w", err)
	}
	for _, a := range all {
		s := &sandboxes[index[a.Sandbox]]
		s.Attachments = append(s.Attachments, a)
	}
	return nil
}

// Unclaimed implements census.Runtime.
func (n *node) Unclaimed() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.unclaimed
}

// Boot implements census.Runtime.
func (*node) Boot() string { return bootIn(bootFile) }

// A noServer is what is known about a cluster without its API server.
type noServer struct{}

// Pods implements census.Cluster.
func (noServer) Pods(ctx context.Context) ([]census.Pod, error) { return nil, ctx.Err() }

// VirtualMachines implements census.Cluster.
func (noServer) VirtualMachines(ctx context.Context) ([]census.VirtualMachine, error) {
	return nil, ctx.Err()
}

// StatefulSets implements census.Cluster.
func (noServer) StatefulSets(ctx context.Context) ([]census.StatefulSet, error) {
	return nil, ctx.Err()
}

// Nodes implements census.Cluster.
func (noServer) Nodes(ctx context.Context) ([]census.Node, error) { return nil, ctx.Err() }

// Pod implements census.Cluster.
func (noServer) Pod(_ context.Context, ref ipam.PodRef) (census.Pod, census.Presence, error) {
	return census.Pod{}, census.Unknown, fmt.Errorf("pod %s: no API server was given: %w", ref, ipam.ErrRefused)
}

// KubeletPods returns the folders in which a kubelet has a folder for each of its pods, named
// by UID: on most platforms, in k0s, and in microk8s.
func KubeletPods() []string {
	return []string{"/var/lib/kubelet/pods", "/var/lib/k0s/kubelet/pods", "/var/snap/microk8s/common/var/lib/kubelet/pods"}
}

// checkKubelet returns an error if the kubelet of this node has pods, but none of the sandboxes
// belongs to one. A kubelet makes the folder of a pod before its sandbox, and keeps a pod's
// last sandbox as long as the pod exists. Without sandboxes, this proves nothing: the limit for
// empty lists covers that.
func (n *node) checkKubelet(sandboxes []census.Sandbox) error {
	pods := make(map[string]string)
	for _, folder := range n.kubelets {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the pods of the kubelet: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() {
				pods[e.Name()] = folder
			}
		}
	}
	isOne := func(s census.Sandbox) bool { return pods[s.UID] != "" }
	if len(pods) == 0 || len(sandboxes) == 0 || slices.ContainsFunc(sandboxes, isOne) {
		return nil
	}
	folders := slices.Compact(slices.Sorted(maps.Values(pods)))
	return ipam.BadInput(fmt.Errorf("container runtime at %s: it has no sandbox of any pod of the kubelet in %s", n.client.endpoint, strings.Join(folders, ", ")),
		nameSocket+"; if this kubelet has its pods elsewhere, give --pods api")
}
