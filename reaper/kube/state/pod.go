package state

import (
	"cmp"
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The annotations in which pods show their addresses, besides their status.
const (
	// Multus writes it after the ADDs of all networks. The value is a list of
	// {name, interface, ips, default} (the multi-networking specification 1.3).
	networkStatus = "k8s.v1.cni.cncf.io/network-status"

	// The older name of the same annotation. Multus wrote both until 3.9.
	networksStatus = "k8s.v1.cni.cncf.io/networks-status"

	// The networks that a pod asks Multus for. A pod with it should have a network-status.
	networks = "k8s.v1.cni.cncf.io/networks"

	// Calico's CNI plugin writes these annotations.
	calicoPodIP       = "cni.projectcalico.org/podIP"
	calicoPodIPs      = "cni.projectcalico.org/podIPs"
	calicoContainerID = "cni.projectcalico.org/containerID"

	// The kubelet sets it on the mirror of a static pod.
	mirror = corev1.MirrorPodAnnotationKey
)

// podKeys are the annotations that verdicts rest on, or findings.
var podKeys = []string{networkStatus, networksStatus, networks, calicoPodIP, calicoPodIPs, calicoContainerID, mirror}

// readPod reduces a pod to the facts that verdicts rest on, or findings.
func readPod(pod *corev1.Pod) census.Pod {
	p := census.Pod{
		Ref:      ipam.PodRef{Namespace: pod.Namespace, Name: pod.Name},
		UID:      string(pod.UID),
		Node:     pod.Spec.NodeName,
		Finished: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Sandbox:  pod.Annotations[calicoContainerID],

		HostNetwork: pod.Spec.HostNetwork,
	}
	if pod.DeletionTimestamp != nil { // by the API's conventions, the time of the deletion plus its grace period
		p.Deadline = pod.DeletionTimestamp.UTC()
	}
	grace := max(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0), ptr.Deref(pod.DeletionGracePeriodSeconds, 0), 0)
	p.TerminationGrace = time.Duration(min(grace, maxSeconds)) * time.Second
	_, isMirror := pod.Annotations[mirror]
	p.Mirror = isMirror && !p.HostNetwork
	if !isMirror {
		p.Created = pod.CreationTimestamp.UTC()
	}
	if pod.Status.StartTime != nil {
		p.Started = pod.Status.StartTime.UTC()
	}
	emptied, annotated := pod.Annotations[calicoPodIP]
	p.NoSandbox = annotated && emptied == ""
	for _, c := range pod.Status.Conditions {
		p.NoSandbox = p.NoSandbox || c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionFalse
	}

	var s showing
	s.add(pod.Status.PodIP)
	for _, ip := range pod.Status.PodIPs {
		s.add(ip.IP)
	}
	p.InStatus = len(s.addresses)
	var named uint64 // which of the first 64 addresses of the status Calico's annotations have
	for text := range strings.SplitSeq(pod.Annotations[calicoPodIP]+","+pod.Annotations[calicoPodIPs], ",") {
		ip, _ := readIP(text)
		if i := slices.Index(s.addresses[:p.InStatus], ip); i >= 0 {
			named |= 1 << i
		}
		if s.add(text); s.tooMuch {
			break // the rest may be 256 KiB long
		}
	}
	byCalico := len(s.addresses) > p.InStatus
	if bits.OnesCount64(named) == p.InStatus {
		p.ByCalico = len(s.addresses)
	}
	readable := s.readNetworkStatus(cmp.Or(pod.Annotations[networkStatus], pod.Annotations[networksStatus]))
	if len(p.Sandbox) > maxSandbox {
		p.Sandbox, s.tooMuch = "", true
	}
	p.Addresses, p.Interfaces = s.addresses, s.interfaces
	p.TooMuch = s.tooMuch
	wanted := pod.Annotations[networks]
	asks := wanted != "" && len(s.interfaces) == 0
	mayHide := !p.Finished && p.Node != ""
	p.LeavesOut = mayHide && wanted != "" && len(s.interfaces) > 0 && s.leavesOut(wanted, pod.Namespace, pod.Annotations[networksStatus] != "")
	p.AddressUnknown = p.TooMuch || mayHide && (!readable || asks || p.InStatus == 0 && !p.HostNetwork)
	// Multus writes the network-status after all ADDs, and the kubelet the status after that.
	inOrder := len(s.interfaces) == 0 || byCalico
	p.Starting = p.AddressUnknown && !p.TooMuch && readable && inOrder && !p.LeavesOut && !p.HostNetwork && isStarting(pod)
	return p
}

// isStarting reports whether the status of a pod has no text in place of an address, and
// Calico's annotations have only addresses. Calico's plugin writes them in the middle of an
// ADD, before the plugins of other networks are called.
func isStarting(pod *corev1.Pod) bool {
	if pod.Status.PodIP != "" || len(pod.Status.PodIPs) > 0 {
		return false
	}
	for _, annotation := range []string{pod.Annotations[calicoPodIP], pod.Annotations[calicoPodIPs]} {
		for text := range strings.SplitSeq(annotation, ",") {
			if _, ok := readIP(text); !ok && annotation != "" {
				return false
			}
		}
	}
	return true
}

// maxSeconds is how many seconds a time.Duration holds.
const maxSeconds = math.MaxInt64 / int64(time.Second)

// maxBoot is how much of a boot ID counts, in bytes. Linux has UUIDs of 36. The ledger keeps only UTF-8.
const maxBoot = 64

// readNode reduces a node to the facts that verdicts rest on. A node without a Ready condition
// is not ready.
func readNode(node *corev1.Node) census.Node {
	n := census.Node{Name: node.Name, Created: node.CreationTimestamp.Time, Boot: node.Status.NodeInfo.BootID}
	n.Boot = strings.ToValidUTF8(n.Boot[:min(len(n.Boot), maxBoot)], "?")
	n.Windows = strings.EqualFold(node.Status.NodeInfo.OperatingSystem, string(corev1.Windows))
	n.OtherNames = otherNames(node)
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			n.Ready = condition.Status == corev1.ConditionTrue
			n.Lost = condition.Status == corev1.ConditionUnknown
			n.Since = condition.LastTransitionTime.Time
		}
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeOutOfService {
			n.OutOfService, n.Tainted = true, ptr.Deref(taint.TimeAdded, metav1.Time{}).Time
		}
	}
	for _, name := range tunnelAnnotations {
		ip, err := netip.ParseAddr(node.Annotations[name])
		if err != nil { // Calico does not set up what it cannot parse
			continue
		}
		if n.Tunnels == nil {
			n.Tunnels = make(map[netip.Addr]string)
		}
		n.Tunnels[ipam.Shown(ip)] = name
	}
	return n
}

// otherNames returns what the node calls itself besides its name, in its label and its addresses.
func otherNames(node *corev1.Node) (names []string) {
	add := func(name string) {
		if name != "" && name != node.Name {
			names = append(names, name)
		}
	}
	add(node.Labels[corev1.LabelHostname])
	for _, address := range node.Status.Addresses {
		if address.Type != corev1.NodeInternalIP && address.Type != corev1.NodeExternalIP {
			add(address.Address)
		}
	}
	return names
}

// tunnelAnnotations are the annotations in which Calico's node agent has the addresses of a node's
// tunnels.
var tunnelAnnotations = []string{
	"projectcalico.org/IPv4IPIPTunnelAddr",
	"projectcalico.org/IPv4VXLANTunnelAddr", "projectcalico.org/IPv6VXLANTunnelAddr",
	"projectcalico.org/IPv4WireguardInterfaceAddr", "projectcalico.org/IPv6WireguardInterfaceAddr",
}

// readStatefulSet reduces a StatefulSet to the facts that verdicts rest on. The default
// number of replicas is 1, as in the API.
func readStatefulSet(set *appsv1.StatefulSet) census.StatefulSet {
	s := census.StatefulSet{Namespace: set.Namespace, Name: set.Name, Replicas: int(ptr.Deref(set.Spec.Replicas, 1))}
	if set.Spec.Ordinals != nil {
		s.Start = int(set.Spec.Ordinals.Start)
	}
	return s
}

// The numbers of the fields that are read, from the .proto files of k8s.io/api and
// k8s.io/apimachinery. A number never changes its meaning.
const (
	podMetadata, podSpec, podStatus = 1, 2, 3

	metaName, metaNamespace, metaUID     = 1, 3, 5
	metaCreated, metaDeadline            = 8, 9
	metaDeletionGrace, metaAnnotations   = 10, 12
	specGrace, specNodeName, specHostNet = 4, 10, 11
	statusPhase, statusConditions        = 1, 2
	statusPodIP, statusPodIPs            = 6, 12
	statusStarted                        = 7

	entryKey, entryVal = 1, 2
)

// podForm returns the form of one list of pods. Its messages are read field by field: a pod has
// some hundred fields that no verdict rests on.
func podForm() kube.Form[census.Pod] {
	form := kube.FormOf("v1", "PodList", readPod)
	var pod corev1.Pod // for all messages, one after the other: it is large
	form.Protobuf = func(message []byte) (census.Pod, error) {
		clear(pod.Annotations)
		pod = corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Annotations: pod.Annotations},
			Status:     corev1.PodStatus{Conditions: pod.Status.Conditions[:0], PodIPs: pod.Status.PodIPs[:0]},
		}
		return readPodMessage(&pod, message)
	}
	return form
}

// readPodMessage returns what readPod returns for the pod that the message decodes to, into an empty
// one. As in any protobuf message, the last of several values for a field counts, and several parts
// of a message are merged.
func readPodMessage(pod *corev1.Pod, message []byte) (census.Pod, error) {
	err := kube.EachField(message, func(f kube.Field) error {
		switch int32(f.Number) {
		case podMetadata:
			return eachIn(f, func(f kube.Field) error { return readMeta(&pod.ObjectMeta, f) })
		case podSpec:
			return eachIn(f, func(f kube.Field) error { return readSpec(&pod.Spec, f) })
		case podStatus:
			return eachIn(f, func(f kube.Field) error { return readStatus(&pod.Status, f) })
		default:
			return nil
		}
	})
	if err != nil {
		return census.Pod{}, err
	}
	return readPod(pod), nil
}

// eachIn calls read with each field of the message that a field has.
func eachIn(f kube.Field, read func(kube.Field) error) error {
	message, err := f.Content()
	if err != nil {
		return err
	}
	return kube.EachField(message, read)
}

// decode decodes the whole message that a field has.
func decode(f kube.Field, into interface{ Unmarshal(message []byte) error }) error {
	message, err := f.Content()
	if err != nil {
		return err
	}
	return into.Unmarshal(message)
}

// readMeta reads a field of an ObjectMeta.
func readMeta(meta *metav1.ObjectMeta, f kube.Field) (err error) {
	switch int32(f.Number) {
	case metaName:
		meta.Name, err = f.Text()
	case metaNamespace:
		meta.Namespace, err = f.Text()
	case metaUID:
		var uid string
		uid, err = f.Text()
		meta.UID = types.UID(uid)
	case metaCreated:
		err = decode(f, &meta.CreationTimestamp)
	case metaDeadline:
		meta.DeletionTimestamp = new(metav1.Time)
		err = decode(f, meta.DeletionTimestamp)
	case metaDeletionGrace:
		meta.DeletionGracePeriodSeconds = new(int64)
		*meta.DeletionGracePeriodSeconds, err = f.Int()
	case metaAnnotations:
		err = readAnnotation(meta, f)
	}
	return err
}

// readAnnotation reads an entry of the map of annotations, if it is one of podKeys. Key and value may
// come in either order; a missing one is empty.
func readAnnotation(meta *metav1.ObjectMeta, f kube.Field) error {
	var key, value []byte
	err := eachIn(f, func(f kube.Field) (err error) {
		switch int32(f.Number) {
		case entryKey:
			key, err = f.Content()
		case entryVal:
			value, err = f.Content()
		}
		return err
	})
	if slices.Contains(podKeys, string(key)) {
		metav1.SetMetaDataAnnotation(meta, string(key), string(value))
	}
	return err
}

// readSpec reads a field of a PodSpec.
func readSpec(spec *corev1.PodSpec, f kube.Field) (err error) {
	switch int32(f.Number) {
	case specGrace:
		spec.TerminationGracePeriodSeconds = new(int64)
		*spec.TerminationGracePeriodSeconds, err = f.Int()
	case specNodeName:
		spec.NodeName, err = f.Text()
	case specHostNet:
		var set int64
		set, err = f.Int()
		spec.HostNetwork = set != 0
	}
	return err
}

// readStatus reads a field of a PodStatus.
func readStatus(status *corev1.PodStatus, f kube.Field) (err error) {
	switch int32(f.Number) {
	case statusPhase:
		var phase string
		phase, err = f.Text()
		status.Phase = corev1.PodPhase(phase)
	case statusConditions:
		last := len(status.Conditions)
		status.Conditions = append(status.Conditions, corev1.PodCondition{})
		if err = decode(f, &status.Conditions[last]); status.Conditions[last].Type != corev1.PodReadyToStartContainers {
			status.Conditions = status.Conditions[:last]
		}
	case statusStarted:
		status.StartTime = new(metav1.Time)
		err = decode(f, status.StartTime)
	case statusPodIP:
		status.PodIP, err = f.Text()
	case statusPodIPs:
		status.PodIPs = append(status.PodIPs, corev1.PodIP{})
		err = decode(f, &status.PodIPs[len(status.PodIPs)-1])
	}
	return err
}
