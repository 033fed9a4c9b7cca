package kube

import (
	"cmp"
	"math"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// The annotations in which pods show their addresses, beside their status.
const (
	// Multus writes it after the ADDs of all networks. The value is a list of
	// {name, interface, ips, default} (the multi-networking specification 1.3).
	networkStatus = "k8s.v1.cni.cncf.io/network-status"

	// The name of the same annotation before Multus 3.5.
	networksStatus = "k8s.v1.cni.cncf.io/networks-status"

	// The networks for which a pod asks Multus. A pod with it ought to have a
	// network-status.
	networks = "k8s.v1.cni.cncf.io/networks"

	// Calico's CNI plugin writes these annotations.
	calicoPodIP       = "cni.projectcalico.org/podIP"
	calicoPodIPs      = "cni.projectcalico.org/podIPs"
	calicoContainerID = "cni.projectcalico.org/containerID"
)

// readPod reduces a pod to the facts that verdicts rest on.
func readPod(pod *corev1.Pod) reaper.Pod {
	p := reaper.Pod{
		Ref:      reaper.PodRef{Namespace: pod.Namespace, Name: pod.Name},
		UID:      string(pod.UID),
		Node:     pod.Spec.NodeName,
		Finished: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Sandbox:  pod.Annotations[calicoContainerID],

		TerminationGrace: terminationGrace(pod),
	}
	var s showing
	s.add(pod.Status.PodIP)
	for _, ip := range pod.Status.PodIPs {
		s.add(ip.IP)
	}
	p.InStatus = len(s.addresses)
	s.add(pod.Annotations[calicoPodIP])
	for text := range strings.SplitSeq(pod.Annotations[calicoPodIPs], ",") {
		if s.add(text); s.tooMuch {
			break // the rest may be 256 KiB long
		}
	}
	byCalico := len(s.addresses) > p.InStatus
	readable := s.readNetworkStatus(cmp.Or(pod.Annotations[networkStatus], pod.Annotations[networksStatus]))
	if len(p.Sandbox) > maxSandbox {
		p.Sandbox, s.tooMuch = "", true
	}
	p.Addresses, p.Interfaces, p.TooMuch = s.addresses, s.interfaces, s.tooMuch
	asks := pod.Annotations[networks] != "" && len(s.interfaces) == 0
	mayHide := !p.Finished && pod.Spec.NodeName != ""
	p.AddressUnknown = p.TooMuch || mayHide && (!readable || asks || p.InStatus == 0 && !pod.Spec.HostNetwork)
	// Multus writes the network-status after all ADDs, and the kubelet the status after that.
	inOrder := len(s.interfaces) == 0 || byCalico
	p.Starting = p.AddressUnknown && !p.TooMuch && readable && inOrder && !pod.Spec.HostNetwork && isStarting(pod)
	return p
}

// isStarting reports whether the status of a pod has no text where an address stands, and
// Calico's annotations have nothing but addresses. Calico's plugin writes them in the
// middle of an ADD, before the plugins of other networks are called.
func isStarting(pod *corev1.Pod) bool {
	if pod.Status.PodIP != "" || len(pod.Status.PodIPs) > 0 {
		return false
	}
	for _, annotation := range []string{calicoPodIP, calicoPodIPs} {
		for text := range strings.SplitSeq(pod.Annotations[annotation], ",") {
			if _, ok := readIP(text); !ok && pod.Annotations[annotation] != "" {
				return false
			}
		}
	}
	return true
}

// maxGrace is the longest grace period that a time.Duration holds, in seconds.
const maxGrace = math.MaxInt64 / int64(time.Second)

// terminationGrace returns the longest grace period for the end of the containers that
// the pod names: in its spec, or in the deletion that is under way.
func terminationGrace(pod *corev1.Pod) time.Duration {
	var seconds int64
	for _, s := range []*int64{pod.Spec.TerminationGracePeriodSeconds, pod.DeletionGracePeriodSeconds} {
		if s != nil {
			seconds = max(seconds, *s)
		}
	}
	return time.Duration(min(seconds, maxGrace)) * time.Second
}

// readNode reduces a node to the facts that verdicts rest on. A node without a condition
// Ready is not ready.
func readNode(node *corev1.Node) reaper.Node {
	n := reaper.Node{Name: node.Name, Created: node.CreationTimestamp.Time}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			n.Ready = condition.Status == corev1.ConditionTrue
			n.Lost = condition.Status == corev1.ConditionUnknown
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

// readStatefulSet reduces a StatefulSet to the facts that verdicts rest on. The default
// number of replicas is 1, as in the API.
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
