package main

import (
	"encoding/json"
	"strings"
)

// blockPodRecord is the pod of an entry, running, with its address of Calico's. It has 2.5 KB
// and not 5, because etcd's default quota of 2 GiB has no room for 273,000 larger ones beside
// 300,000 handles.
func blockPodRecord(e entry) (record, error) {
	return runningRecord(e, e.block().node(), e.given().PodOptions(e.blockIP())...)
}

// calicoResources is the prefix of Calico's resources in its etcd.
const calicoResources = "/calico/resources/v3/projectcalico.org/"

// calicoNodeRecord is Calico's own node, which is the Kubernetes node of that name.
func calicoNodeRecord(n int) (record, error) {
	return calicoResource("Node", "nodes/"+nodeName(n), uid(nodeUID, n), map[string]any{
		"orchRefs": []any{map[string]string{"nodeName": nodeName(n), "orchestrator": "k8s"}},
	})
}

// endpointRecord is the workload endpoint of an entry's pod. By it, calicoctl knows in etcd
// who has an address. In Kubernetes, it knows that by the pod.
func endpointRecord(e entry) (record, error) {
	s, escape := e.given(), strings.NewReplacer("-", "--")
	name := escape.Replace(s.Node) + "-k8s-" + escape.Replace(s.Pod) + "-eth0"
	return calicoResource("WorkloadEndpoint", "workloadendpoints/"+s.Namespace+"/"+name, uid(endpointUID, int(e)), map[string]any{
		"orchestrator": "k8s", "node": s.Node, "pod": s.Pod, "endpoint": "eth0", "containerID": s.ContainerID,
		"ipNetworks": []string{e.blockIP().String() + "/32"}, "profiles": []string{"kns." + s.Namespace},
		"interfaceName": "cali" + s.ContainerID[len(s.ContainerID)-11:],
	})
}

// calicoResource is a resource in Calico's etcd. Its path ends with its namespace, if it has
// one, and its name.
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
