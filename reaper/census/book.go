package census

import (
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Claim says that a pod, a virtual machine, a node or a sandbox has an address.
type Claim struct {
	IP     netip.Addr
	By     Claimant
	Source string // what says so: one of the sources below, or the name of a node's annotation
	Proves bool   // no tenant can write that: only the kubelet or the network plugin does
	Ended  bool   // the claimant is a pod that is finished

	Attachment *ipam.Attachment // of a sandbox; nil for other claimants
}

// String says for people what is claimed.
func (c Claim) String() string {
	switch c.By.Kind {
	case KindMachine:
		return c.By.String() + " reports the address"
	case KindSandbox:
		return c.By.String() + " has the address in " + c.Attachment.File
	default:
		return c.By.String() + " shows the address"
	}
}

// The sources of the claims of pods, virtual machines and sandboxes.
const (
	PodStatus        = "pod status"
	NetworkStatus    = "network-status annotation"
	CalicoAnnotation = "Calico annotation"
	GuestReport      = "guest report"
	SandboxCache     = "libcni's cache"
)

// A Claimant is a pod, a virtual machine, a node or a sandbox that claims an address.
type Claimant struct {
	Kind Kind
	Ref  ipam.PodRef // a node has no namespace; that of a sandbox is its pod
}

// A Kind says what a Claimant is.
type Kind string

// The kinds of claimants.
const (
	KindPod       Kind = "pod"
	KindMachine   Kind = "virtual machine"
	KindNode      Kind = "node"
	KindStoreNode Kind = "stored node"    // of a store, with the name that the store has for it
	KindSandbox   Kind = "sandbox of pod" // that a container runtime has
)

// String names the claimant for people.
func (c Claimant) String() string {
	return string(c.Kind) + " " + strings.TrimPrefix(c.Ref.String(), "/")
}

// MayBe reports whether the claimant is that pod, or is a virtual machine to which a pod of that name
// may belong.
func (c Claimant) MayBe(pod ipam.PodRef) bool {
	return c.Kind == KindPod && c.Ref == pod || c.Kind == KindMachine && launchers(c.Ref) == generatedFrom(pod)
}

// A Book has the claims on every address. The zero Book has none. It is safe for concurrent use.
type Book struct {
	pods   []Pod
	fresh  map[ipam.PodRef]Reading // overrides the pods
	first  map[netip.Addr]int32    // the number of the first showing of each address: its position plus 1
	shown  []showing
	others map[netip.Addr][]Claim // of nodes and virtual machines
}

// A showing is an address of a pod: the position of the pod in the list, and the number of the next
// showing of the same address, or 0.
type showing struct{ pod, next int32 }

// newBook indexes the addresses of a complete list of pods, and keeps the claims of others. The pods
// must not change any more.
func newBook(pods []Pod, others map[netip.Addr][]Claim) Book {
	b := Book{pods: pods, first: make(map[netip.Addr]int32, len(pods)), shown: make([]showing, 0, len(pods)), others: others}
	for i, pod := range slices.Backward(pods) {
		for _, ip := range pod.Addresses {
			b.shown = append(b.shown, showing{int32(i), b.first[ip]})
			b.first[ip] = int32(len(b.shown))
		}
	}
	return b
}

// add adds a claim of a node or of a virtual machine.
func (b Book) add(claim Claim) { b.others[claim.IP] = append(b.others[claim.IP], claim) }

// On yields the claims on an address: of pods, then of nodes, then of virtual machines, each in the
// order of its list. What a second look read of a pod replaces what the list says of it; a pod that
// could not be read is as it was listed.
func (b Book) On(ip netip.Addr) iter.Seq[Claim] {
	return func(yield func(Claim) bool) {
		for n := b.first[ip]; n != 0; n = b.shown[n-1].next {
			pod := &b.pods[b.shown[n-1].pod]
			if b.fresh[pod.Ref].Presence == Unknown && !yield(pod.Claim(ip)) {
				return
			}
		}
		for _, l := range b.fresh {
			if l.Presence == Present && l.Pod.Shows(ip) && !yield(l.Pod.Claim(ip)) {
				return
			}
		}
		for _, claim := range b.others[ip] {
			if !yield(claim) {
				return
			}
		}
	}
}

// Claim returns the claim of the pod on an address that it shows.
func (p *Pod) Claim(ip netip.Addr) Claim {
	claim := Claim{IP: ip, By: Claimant{KindPod, p.Ref}, Source: CalicoAnnotation, Proves: p.Proves(ip), Ended: p.Finished}
	switch {
	case claim.Proves:
		claim.Source = PodStatus
	case slices.ContainsFunc(p.Interfaces, func(i Interface) bool { return slices.Contains(i.Addresses, ip) }):
		claim.Source = NetworkStatus
	}
	return claim
}
