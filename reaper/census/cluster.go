package census

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Pod has the fields of a pod object that rules look at.
type Pod struct {
	Ref  ipam.PodRef
	UID  string
	Node string // empty until it is scheduled

	// Created is when the object was created, by the clock of the API server. It is zero for
	// the mirror of a static pod, which the kubelet creates again while the sandbox lives.
	Created time.Time

	// Started is when the kubelet took on the pod, by the clock of its node, before it asked for a
	// sandbox; zero if it has not said so.
	Started time.Time

	// Deadline is when a deletion that is under way should be complete, at the end of its
	// grace period; zero if there is none.
	Deadline time.Time

	// Addresses are the addresses that the pod shows: in its status, in Calico's
	// annotations, and in the Multus network-status of any interface. The first
	// InStatus of them are from the status. No address is there twice.
	Addresses []netip.Addr
	InStatus  int

	// ByCalico is how many of the first Addresses Calico's annotations name; 0 if they name none,
	// or not all that the status has. Then it is not known that Calico gave any of them.
	ByCalico int

	// HostNetwork is set for a pod on the network of its node. What its status has is the node's.
	HostNetwork bool

	// NoSandbox is set if the kubelet says that the pod has no sandbox, or none with a network, or
	// if Calico's plugin took its address out of the annotation, as a DEL does. Its
	// status and its annotations may still have the addresses of an earlier one.
	NoSandbox bool

	// Interfaces are the interfaces that the Multus network-status shows. No name is
	// there twice.
	Interfaces []Interface

	// Sandbox is the ID of the sandbox that the pod shows; empty if it shows none.
	Sandbox string

	// TerminationGrace is how long the kubelet lets the containers run after the
	// deletion of the pod: the longest that the pod names.
	TerminationGrace time.Duration

	// Finished is set for phase Succeeded or Failed.
	Finished bool

	// Mirror is set for the mirror of a static pod that is not on the network of its node. Its
	// kubelet runs the pod without it, too. Anyone who may create pods can write what sets it, but
	// only a mirror that is true has a status.
	Mirror bool

	// AddressUnknown is set for a pod that is not finished and should show an
	// address but does not, or whose network-status cannot be decoded; and for a pod
	// with TooMuch.
	AddressUnknown bool

	// LeavesOut is set for a pod that is not finished, and whose network-status does not
	// name every network that it requests. It may have an address there that it does not
	// show.
	LeavesOut bool

	// TooMuch is set for a pod that shows more addresses than ip-reaper reads.
	TooMuch bool

	// Starting is set for a pod whose address is unknown because its status has none, and
	// whose annotations can be read: its sandbox is not set up yet, or the kubelet has not
	// written the status yet. It may show an address that Calico's plugin just gave it. It
	// has no network-status, or one alongside an address of Calico.
	Starting bool
}

// An Interface of a pod has the addresses that a network-status shows for it.
type Interface struct {
	Name      string
	Network   string // what the network-status calls its network: namespace/name of an attachment, or a name from a configuration
	Addresses []netip.Addr
}

// Shows reports whether the pod shows the address.
func (p Pod) Shows(ip netip.Addr) bool { return slices.Contains(p.Addresses, ip) }

// Status returns the addresses of the pod's status. The kubelet writes the status. The
// owner of a pod may write any annotation on it, so the other addresses are claims.
func (p Pod) Status() []netip.Addr { return p.Addresses[:p.InStatus] }

// Proves reports whether the status of the pod has the address.
func (p Pod) Proves(ip netip.Addr) bool { return slices.Contains(p.Status(), ip) }

// hides reports whether the pod may have an address that it does not show.
func (p Pod) hides() bool { return p.AddressUnknown || p.LeavesOut }

// Waits reports whether a pod may wait for an address, or for a node.
func (p Pod) Waits() bool { return !p.Finished && (p.hides() || p.Node == "") }

// veiled reports whether only the annotations of the pod leave addresses unknown.
func (p Pod) veiled() bool { return p.hides() && p.InStatus > 0 }

// A StatefulSet has the fields of a StatefulSet object that rules look at.
type StatefulSet struct {
	Namespace string
	Name      string
	Start     int // first ordinal
	Replicas  int
}

// A Node has the fields of a node object that rules look at.
type Node struct {
	Name  string
	Ready bool

	// OtherNames are what else the machine is called: its host name, and its names in DNS.
	OtherNames []string

	// Since is when Ready last changed; zero if the node does not say.
	Since time.Time

	// Lost is set if Ready is Unknown: the node controller lost contact with the node,
	// and Since is by its clock. Otherwise Since is by the clock of the node.
	Lost bool

	// Created is when the node joined; zero if the node does not say.
	Created time.Time

	// Boot identifies the boot of the machine; empty if the node does not say.
	Boot string

	// Windows is set if the kubelet runs on Windows.
	Windows bool

	// OutOfService is set by the taint node.kubernetes.io/out-of-service: an
	// administrator states that nothing runs on the node any more. It says nothing about a
	// node that is ready: see Fenced.
	OutOfService bool

	// Tainted is when that taint was added; zero if the node does not say.
	Tainted time.Time

	// Tunnels are the addresses that the node shows as those of its tunnels in Calico's network,
	// with the annotations that show them.
	Tunnels map[netip.Addr]string
}

// A VirtualMachine has the fields of a VirtualMachineInstance of KubeVirt that rules
// look at.
type VirtualMachine struct {
	Namespace string
	Name      string

	// Addresses are those that the guest reports, true or not. A guest keeps its address in a live
	// migration, although the new pod shows another one.
	Addresses []netip.Addr

	// Reported is set if Addresses are all that the guest has: its agent reports every
	// interface, or the guest has ended.
	Reported bool

	// Created is when the machine was started; zero if it does not say.
	Created time.Time

	// TooMuch is set if the guest reports more addresses than are read.
	TooMuch bool
}

// Presence says whether a pod exists.
type Presence int

// The presences. The zero value means that it is not known.
const (
	Unknown Presence = iota
	Present
	Absent
)

// A Cluster reads pods, virtual machines, StatefulSets and nodes. Every answer has every write
// that was made before the call, as far as the API server knows: a list may come from a cache that
// has lost an event, and a read by name does not. If a second request would fail in the same way,
// the error wraps ErrRefused.
type Cluster interface {
	// Pods lists every pod of the cluster. It is complete or an error.
	Pods(ctx context.Context) ([]Pod, error)

	// VirtualMachines lists every VirtualMachineInstance; none if the cluster does not
	// have that resource. It is complete or an error.
	VirtualMachines(ctx context.Context) ([]VirtualMachine, error)

	// StatefulSets lists every StatefulSet. It is complete or an error.
	StatefulSets(ctx context.Context) ([]StatefulSet, error)

	// Nodes lists every node. It is complete or an error.
	Nodes(ctx context.Context) ([]Node, error)

	// Pod reads one pod. Absent means that the API server itself answered that
	// there is no such pod. After any other failure the pod is Unknown, and there
	// is an error.
	Pod(ctx context.Context, ref ipam.PodRef) (Pod, Presence, error)
}

// A Sandbox is a pod sandbox that a container runtime has, in any state.
type Sandbox struct {
	ID          string
	Pod         ipam.PodRef
	UID         string // of the pod
	Ready       bool
	Attachments []ipam.Attachment // what the node knows of its interfaces
}

// A Runtime is a Cluster that also lists the sandboxes of the node on which the run is.
type Runtime interface {
	Cluster

	// Sandboxes lists every sandbox, in any state, and after that reads their attachments. It is complete
	// or an error. A sandbox that is being set up may not be there yet, although its allocation is.
	Sandboxes(ctx context.Context) ([]Sandbox, error)

	// Unclaimed says why no sandbox has attachments, if nothing keeps them where the last Sandboxes looked;
	// empty if something does.
	Unclaimed() string

	// Boot identifies the boot of the node; empty if it is not known. Two boots never have the same.
	Boot() string
}

// sandboxList has the sandboxes of a node. The zero sandboxList was not read.
type sandboxList struct {
	read   bool
	boot   string
	none   string    // see Runtime.Unclaimed; empty without sandboxes
	all    []Sandbox // by ID
	claims map[netip.Addr][]Claim
	vague  []ipam.Attachment // the unreadable ones
}

// sandboxesOf lists the sandboxes of the cluster's node, if it is a Runtime.
func sandboxesOf(ctx context.Context, cluster Cluster) (sandboxList, error) {
	runtime, ok := cluster.(Runtime)
	if !ok {
		return sandboxList{}, nil
	}
	sandboxes, err := runtime.Sandboxes(ctx)
	if err != nil {
		return sandboxList{}, fmt.Errorf("list the sandboxes of the container runtime: %w", err)
	}
	l := sandboxList{read: true, boot: runtime.Boot(), all: slices.Clone(sandboxes), claims: make(map[netip.Addr][]Claim)}
	slices.SortFunc(l.all, func(a, b Sandbox) int { return strings.Compare(a.ID, b.ID) })
	for _, s := range l.all {
		for n := range s.Attachments {
			l.add(s.Pod, &s.Attachments[n])
		}
	}
	if len(sandboxes) > 0 {
		l.none = runtime.Unclaimed()
	}
	return l, nil
}

// add adds what an attachment of a sandbox of the pod says.
func (l *sandboxList) add(pod ipam.PodRef, a *ipam.Attachment) {
	if a.Unreadable != "" {
		l.vague = append(l.vague, *a)
		return
	}
	for _, ip := range a.IPs {
		claim := Claim{IP: ip, By: Claimant{KindSandbox, pod}, Source: SandboxCache, Proves: true, Attachment: a}
		l.claims[ip] = append(l.claims[ip], claim)
	}
}
