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

// podFields are the fields of a pod object that verdicts rest on, or findings.
type podFields struct {
	namespace, name, uid, node, phase string

	hostNetwork, noSandbox bool

	// In seconds since 1970; 0 if the pod does not say. By the API's conventions, a
	// deletionTimestamp is the time of the deletion plus its grace period.
	created, deadline int64

	// How long the containers may take to end: by the spec, and by a deletion under way. 0 if
	// the pod does not say.
	grace, deletionGrace int64 // in seconds

	podIP  string
	podIPs []string

	annotations podAnnotations
}

// podAnnotations are the annotations that verdicts rest on.
type podAnnotations struct {
	networkStatus, networksStatus, networks      string
	calicoPodIP, calicoPodIPs, calicoContainerID string
	emptied                                      bool // calicoPodIP is there, and has no address
	isMirror                                     bool
}

// set sets the value of an annotation. It ignores those that no verdict rests on.
func (a *podAnnotations) set(key, value []byte) {
	switch string(key) {
	case networkStatus:
		a.networkStatus = string(value)
	case networksStatus:
		a.networksStatus = string(value)
	case networks:
		a.networks = string(value)
	case calicoPodIP:
		a.calicoPodIP, a.emptied = string(value), len(value) == 0
	case calicoPodIPs:
		a.calicoPodIPs = string(value)
	case calicoContainerID:
		a.calicoContainerID = string(value)
	case mirror:
		a.isMirror = true
	}
}

// readPod reduces a pod to the facts that verdicts rest on.
func readPod(pod *corev1.Pod) census.Pod {
	f := podFields{
		namespace:     pod.Namespace,
		name:          pod.Name,
		uid:           string(pod.UID),
		node:          pod.Spec.NodeName,
		phase:         string(pod.Status.Phase),
		hostNetwork:   pod.Spec.HostNetwork,
		created:       second(&pod.CreationTimestamp),
		deadline:      second(pod.DeletionTimestamp),
		grace:         ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0),
		deletionGrace: ptr.Deref(pod.DeletionGracePeriodSeconds, 0),
		podIP:         pod.Status.PodIP,
	}
	for key, value := range pod.Annotations {
		f.annotations.set([]byte(key), []byte(value))
	}
	for _, ip := range pod.Status.PodIPs {
		f.podIPs = append(f.podIPs, ip.IP)
	}
	for _, c := range pod.Status.Conditions {
		f.noSandbox = f.noSandbox || c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionFalse
	}
	return f.reduce()
}

// reduce returns the facts in the fields.
func (f *podFields) reduce() census.Pod {
	p := census.Pod{
		Ref:      ipam.PodRef{Namespace: f.namespace, Name: f.name},
		UID:      f.uid,
		Node:     f.node,
		Finished: f.phase == string(corev1.PodSucceeded) || f.phase == string(corev1.PodFailed),
		Sandbox:  f.annotations.calicoContainerID,
		Deadline: timeOf(f.deadline),
		Mirror:   f.annotations.isMirror && !f.hostNetwork,

		HostNetwork: f.hostNetwork,
		NoSandbox:   f.noSandbox || f.annotations.emptied,

		TerminationGrace: time.Duration(min(max(f.grace, f.deletionGrace, 0), maxSeconds)) * time.Second,
	}
	if !f.annotations.isMirror {
		p.Created = timeOf(f.created)
	}
	var s showing
	s.add(f.podIP)
	for _, ip := range f.podIPs {
		s.add(ip)
	}
	p.InStatus = len(s.addresses)
	var named uint64 // which of the first 64 addresses of the status Calico's annotations have
	for text := range strings.SplitSeq(f.annotations.calicoPodIP+","+f.annotations.calicoPodIPs, ",") {
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
	readable := s.readNetworkStatus(cmp.Or(f.annotations.networkStatus, f.annotations.networksStatus))
	if len(p.Sandbox) > maxSandbox {
		p.Sandbox, s.tooMuch = "", true
	}
	p.Addresses, p.Interfaces = s.addresses, s.interfaces
	p.TooMuch = s.tooMuch
	asks := f.annotations.networks != "" && len(s.interfaces) == 0
	mayHide := !p.Finished && p.Node != ""
	p.LeavesOut = mayHide && f.annotations.networks != "" && len(s.interfaces) > 0 &&
		s.leavesOut(f.annotations.networks, f.namespace, f.annotations.networksStatus != "")
	p.AddressUnknown = p.TooMuch || mayHide && (!readable || asks || p.InStatus == 0 && !f.hostNetwork)
	// Multus writes the network-status after all ADDs, and the kubelet the status after that.
	inOrder := len(s.interfaces) == 0 || byCalico
	p.Starting = p.AddressUnknown && !p.TooMuch && readable && inOrder && !p.LeavesOut && !f.hostNetwork && f.isStarting()
	return p
}

// second returns the second of a time as the API stores it; 0 for no time.
func second(t *metav1.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// timeOf returns the time of a second; the zero time for 0.
func timeOf(second int64) time.Time {
	if second == 0 {
		return time.Time{}
	}
	return time.Unix(second, 0).UTC()
}

// isStarting reports whether the status of a pod has no text in place of an address, and
// Calico's annotations have only addresses. Calico's plugin writes them in the middle of an
// ADD, before the plugins of other networks are called.
func (f *podFields) isStarting() bool {
	if f.podIP != "" || len(f.podIPs) > 0 {
		return false
	}
	for _, annotation := range []string{f.annotations.calicoPodIP, f.annotations.calicoPodIPs} {
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
			n.OutOfService = true
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
	conditionType, conditionStatus       = 1, 2

	podIPText          = 1
	timeSeconds        = 1
	entryKey, entryVal = 1, 2
)

// podForm returns the form of a list of pods. Its messages are read field by field: a pod has
// some hundred fields that no verdict rests on.
func podForm() kube.Form[census.Pod] {
	form := kube.FormOf("v1", "PodList", readPod)
	form.Protobuf = readPodMessage
	return form
}

// readPodMessage returns what readPod returns for the pod that the message decodes to. As in
// any protobuf message, the last of several values for a field counts, and several parts of a
// message are merged.
func readPodMessage(message []byte) (census.Pod, error) {
	var fields podFields
	err := kube.EachField(message, func(f kube.Field) error {
		switch int32(f.Number) {
		case podMetadata:
			return eachIn(f, fields.readMeta)
		case podSpec:
			return eachIn(f, fields.readSpec)
		case podStatus:
			return eachIn(f, fields.readStatus)
		default:
			return nil
		}
	})
	if err != nil {
		return census.Pod{}, err
	}
	return fields.reduce(), nil
}

// eachIn calls read with each field of the message that a field has.
func eachIn(f kube.Field, read func(kube.Field) error) error {
	message, err := f.Content()
	if err != nil {
		return err
	}
	return kube.EachField(message, read)
}

// readMeta reads a field of an ObjectMeta.
func (f *podFields) readMeta(field kube.Field) (err error) {
	switch int32(field.Number) {
	case metaName:
		f.name, err = field.Text()
	case metaNamespace:
		f.namespace, err = field.Text()
	case metaUID:
		f.uid, err = field.Text()
	case metaCreated:
		f.created, err = readSecond(field)
	case metaDeadline:
		f.deadline, err = readSecond(field)
	case metaDeletionGrace:
		f.deletionGrace, err = field.Int()
	case metaAnnotations:
		err = f.readAnnotation(field)
	}
	return err
}

// readAnnotation reads an entry of the map of annotations. Key and value may come in
// either order; a missing one is empty.
func (f *podFields) readAnnotation(field kube.Field) error {
	var key, value []byte
	err := eachIn(field, func(field kube.Field) (err error) {
		switch int32(field.Number) {
		case entryKey:
			key, err = field.Content()
		case entryVal:
			value, err = field.Content()
		}
		return err
	})
	f.annotations.set(key, value)
	return err
}

// readSpec reads a field of a PodSpec.
func (f *podFields) readSpec(field kube.Field) (err error) {
	switch int32(field.Number) {
	case specGrace:
		f.grace, err = field.Int()
	case specNodeName:
		f.node, err = field.Text()
	case specHostNet:
		var set int64
		set, err = field.Int()
		f.hostNetwork = set != 0
	}
	return err
}

// readStatus reads a field of a PodStatus.
func (f *podFields) readStatus(field kube.Field) (err error) {
	switch int32(field.Number) {
	case statusPhase:
		f.phase, err = field.Text()
	case statusConditions:
		err = f.readCondition(field)
	case statusPodIP:
		f.podIP, err = field.Text()
	case statusPodIPs:
		var ip string
		err = eachIn(field, func(field kube.Field) (err error) {
			if field.Number == podIPText {
				ip, err = field.Text()
			}
			return err
		})
		f.podIPs = append(f.podIPs, ip)
	}
	return err
}

// readCondition reads a condition of the pod.
func (f *podFields) readCondition(field kube.Field) error {
	var kind, status []byte
	err := eachIn(field, func(field kube.Field) (err error) {
		switch int32(field.Number) {
		case conditionType:
			kind, err = field.Content()
		case conditionStatus:
			status, err = field.Content()
		}
		return err
	})
	f.noSandbox = f.noSandbox || string(kind) == string(corev1.PodReadyToStartContainers) && string(status) == string(corev1.ConditionFalse)
	return err
}

// readSecond reads the seconds of a Time.
func readSecond(field kube.Field) (second int64, err error) {
	err = eachIn(field, func(field kube.Field) (err error) {
		if field.Number == timeSeconds {
			second, err = field.Int()
		}
		return err
	})
	return second, err
}
