package main

import (
	"encoding/json"
	"strings"
)

// blockPodRecord returns the running pod of an entry, with its Calico address. It has 2.5 KB and
// not 5, because etcd's default quota of 2 GiB has no room for 273,000 larger ones and 300,000
// handles.
func blockPodRecord(e entry) (record, error) {
	return runningRecord(e, e.block().node(), e.given().PodOptions(e.blockIP())...)
}

// calicoResources is the prefix of Calico's resources in its etcd.
const calicoResources = "/calico/resources/v3/projectcalico.org/"

// calicoNodeRecord returns Calico's own node, which refers to the Kubernetes node of the same name.
func calicoNodeRecord(n int) (record, error) {
	return calicoResource("Node", "nodes/"+nodeName(n), uid(nodeUID, n), map[string]any{
		"orchRefs": []any{map[string]string{"nodeName": nodeName(n), "orchestrator": "k8s"}},
	})
}

// endpointRecord returns the workload endpoint of an entry's pod. In etcd, it tells calicoctl who
// has an address. In Kubernetes, the pod tells it.
func endpointRecord(e entry) (record, error) {
	s, escape := e.given(), strings.NewReplacer("-", "--")
	name := escape.Replace(s.Node) + "-k8s-" + escape.Replace(s.Pod) + "-eth0"
	return calicoResource("WorkloadEndpoint", "workloadendpoints/"+s.Namespace+"/"+name, uid(endpointUID, int(e)), map[string]any{
		"orchestrator": "k8s", "node": s.Node, "pod": s.Pod, "endpoint": "eth0", "containerID": s.ContainerID,
		"ipNetworks": []string{e.blockIP().String() + "/32"}, "profiles": []string{"kns." + s.Namespace},
		"interfaceName": "cali" + s.ContainerID[len(s.ContainerID)-11:],
	})
}

// calicoResource returns a resource in Calico's etcd. Its path ends with its namespace, if any, and
// its name.
func calicoResource(kind, path, uid string, spec any) (record, error) {
	parts := strings.Split(path, "/")
	metadata := map[string]any{"name": parts[len(parts)-1], "uid": uid, "creationTimestamp": created}
	if len(parts) == 3 {
		metadata["namespace"] = parts[1]
		metadata["labels"] = map[string]string{
			"projectcalico.org/namespace": parts[1], "projectcalico.org/orchestrator": "k8s",
		}
	}
	value, err := json.Marshal(map[string]any{
		"kind": kind, "apiVersion": "projectcalico.org/v3", "metadata": metadata, "spec": spec,
	})
	return record{calicoResources + path, value}, err
}
