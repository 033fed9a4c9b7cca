package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

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
	return ipam.BadInput(fmt.Errorf("container runtime at %s: it has no sandbox of any pod of the kubelet in %s", n.client.Endpoint(), strings.Join(folders, ", ")),
		"name the socket of the kubelet's runtime with --runtime-endpoint; if this kubelet has its pods elsewhere, give --pods api")
}
