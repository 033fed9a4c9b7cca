package kube

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Where pods show their addresses, beside their status.
const (
	// Multus writes it after the ADDs of all networks. The value is a list of
	// {name, interface, ips, default} (the multi-networking specification 1.3).
	networkStatus = "k8s.v1.cni.cncf.io/network-status"

	// The same, as Multus called it before 3.5.
	networksStatus = "k8s.v1.cni.cncf.io/networks-status"

	// What a pod asks Multus for: a pod with it ought to have a status.
	networks = "k8s.v1.cni.cncf.io/networks"

	// Calico's CNI plugin writes these.
	calicoPodIP       = "cni.projectcalico.org/podIP"
	calicoPodIPs      = "cni.projectcalico.org/podIPs"
	calicoContainerID = "cni.projectcalico.org/containerID"
)

// readPod keeps what verdicts need of a pod.
func readPod(pod *corev1.Pod) reaper.Pod {
	p := reaper.Pod{
		Ref:      reaper.PodRef{Namespace: pod.Namespace, Name: pod.Name},
		UID:      string(pod.UID),
		Node:     pod.Spec.NodeName,
		Finished: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Sandbox:  pod.Annotations[calicoContainerID],
	}
	texts := []string{pod.Status.PodIP}
	for _, ip := range pod.Status.PodIPs {
		texts = append(texts, ip.IP)
	}
	p.Addresses = readIPs(texts)
	p.InStatus = len(p.Addresses)
	p.Addresses = append(p.Addresses, readIPs([]string{pod.Annotations[calicoPodIP]})...)
	p.Addresses = append(p.Addresses, readIPs(strings.Split(pod.Annotations[calicoPodIPs], ","))...)
	inStatus := len(p.Addresses) > 0

	interfaces, readable := readNetworkStatus(cmp.Or(pod.Annotations[networkStatus], pod.Annotations[networksStatus]))
	for _, ips := range interfaces {
		p.Addresses = append(p.Addresses, ips...)
	}
	p.Interfaces = interfaces
	asks := pod.Annotations[networks] != ""
	placed := pod.Spec.NodeName != ""
	p.AddressUnknown = !p.Finished && placed && (!readable || (!inStatus && !pod.Spec.HostNetwork) || (asks && len(interfaces) == 0))
	return p
}

// readNetworkStatus returns the addresses by interface; nothing for an empty
// annotation. It reports false where it cannot understand all of it, with what
// it could. An interface without a name is kept under its network's.
func readNetworkStatus(annotation string) (map[string][]netip.Addr, bool) {
	if annotation == "" {
		return nil, true
	}
	var entries []json.RawMessage
	if err := json.Unmarshal([]byte(annotation), &entries); err != nil {
		return nil, false
	}
	readable := true
	interfaces := make(map[string][]netip.Addr, len(entries))
	for _, entry := range entries {
		var e struct {
			Name      string   `json:"name"`
			Interface string   `json:"interface"`
			IPs       []string `json:"ips"`
		}
		// A field of a wrong type leaves the others as they are.
		if err := json.Unmarshal(entry, &e); err != nil {
			readable = false
			if len(e.IPs) == 0 {
				continue
			}
		}
		name := e.Interface
		if name == "" {
			name = "network " + e.Name
		}
		ips := readIPs(e.IPs)
		readable = readable && len(ips) == len(e.IPs)
		interfaces[name] = append(interfaces[name], ips...)
	}
	return interfaces, readable
}

// readIPs returns the addresses among the texts, with or without a prefix
// length, in the form in which they compare equal.
func readIPs(texts []string) []netip.Addr {
	var ips []netip.Addr
	for _, text := range texts {
		text, _, _ = strings.Cut(strings.TrimSpace(text), "/")
		if ip, err := netip.ParseAddr(text); err == nil {
			ips = append(ips, ip.Unmap().WithZone(""))
		}
	}
	return ips
}

// readNode keeps what verdicts need of a node. A node that says nothing of itself
// is not ready.
func readNode(node *corev1.Node) reaper.Node {
	n := reaper.Node{Name: node.Name}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			n.Ready = condition.Status == corev1.ConditionTrue
			n.Since = condition.LastTransitionTime.Time
		}
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeOutOfService {
			n.OutOfService = true
		}
	}
	return n
}

// readStatefulSet keeps what verdicts need of a StatefulSet. Replicas that are
// not set are 1, as the API server has it.
func readStatefulSet(set *appsv1.StatefulSet) reaper.StatefulSet {
	s := reaper.StatefulSet{Namespace: set.Namespace, Name: set.Name, Replicas: 1}
	if set.Spec.Replicas != nil {
		s.Replicas = int(*set.Spec.Replicas)
	}
	if set.Spec.Ordinals != nil {
		s.Start = int(set.Spec.Ordinals.Start)
	}
	return s
}
