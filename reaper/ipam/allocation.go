package ipam

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"time"
)

// A PodRef names a pod. It is a name, not an identity: a StatefulSet brings a
// different pod back under the same PodRef. The zero PodRef names no pod.
type PodRef struct {
	Namespace string
	Name      string
}

// String returns namespace/name.
func (p PodRef) String() string { return p.Namespace + "/" + p.Name }

// An Owner is the owner of an address, as far as the store names it. Any field may
// be empty.
type Owner struct {
	Pod       PodRef
	UID       string // of the pod
	Sandbox   string // container ID of the pod sandbox
	Interface string // inside the sandbox, such as net1

	// Node is the node of the sandbox. If the store does not name it, a judge.Case sets it
	// to the node that another store names, or on which the pod was last seen.
	Node string
}

// String names the owner for people: the pod, or else the sandbox.
func (o Owner) String() string {
	switch {
	case o.Pod != PodRef{}:
		return "pod " + o.Pod.String()
	case o.Sandbox != "":
		return "sandbox " + o.Sandbox
	default:
		return "an owner without a name"
	}
}

// A StoreNode is a node that a store has an object of its own for. Several clusters may have their
// nodes in one store.
type StoreNode struct {
	Name string // in the store
	Node string // the name of the node in its cluster; empty if that cannot be read

	// Twin is another node of the store with the same Node; empty if there is none. They may be of
	// different clusters.
	Twin string
}

// Adoption says whether a later sandbox of a pod may get the allocation of an earlier one.
type Adoption int

// The adoptions. The zero value rules nothing out.
const (
	Adoptable     Adoption = iota // a pod that comes back may get it
	AdoptedOnNode                 // only a pod that comes back to the same node, or to one of AlsoOn, may get it
	NeverAdopted                  // no later sandbox can get it, so a pod that comes back gets another one
	SandboxOwned                  // as NeverAdopted, and each sandbox gets its own: once the pod shows another sandbox, it has been replaced
)

// An Allocation is one address that a store holds, as it was listed.
type Allocation struct {
	Backend string // set by TakeInventory
	Pool    string // set by TakeInventory: the name of the pool that holds it
	Network string // set by TakeInventory: that of the pool. An address is unique within it
	Key     string // the allocation's own name within the pool
	IP      netip.Addr
	Owner   Owner

	// StoreNode is the node of the sandbox, if the store has nodes of its own and one of them is that
	// of the owner, or else the one from whose part of the store the address is. It is nil if not.
	StoreNode *StoreNode

	// Token is the value that the store compares on write. If the allocation
	// changed hands, the value differs and the store refuses. An allocation
	// without a token is never released.
	Token string

	// Created is when the address was allocated; zero if the store does not say.
	Created time.Time

	// Unreadable says why the allocation could not be understood. An unreadable
	// allocation is reported and never released; its other fields may be empty.
	Unreadable string

	// Foreign says what the address is for, if not for a pod: a tunnel, or a
	// virtual machine. A foreign allocation is reported and never released.
	Foreign string

	// Tunnel is set if the address is for a tunnel of the owner's node, as the store says.
	Tunnel bool

	// Protected says what protects the address, such as an IPAMClaim that exists. A
	// protected allocation is kept although it has no owner.
	Protected string

	// UntilBoot is set if Protected only says that something may run since before the last boot of
	// the node. Once a run has seen the allocation in an earlier boot, it is not protected.
	UntilBoot bool

	// Deleting says that the store is deleting the allocation, and what it waits for. The
	// allocation is kept until it is gone, although it has no owner. It is empty if no deletion
	// has begun.
	Deleting string

	// UnknownField names a field of the stored allocation that the backend does not
	// know, with its path. It may mean that the address is in use, so the allocation is
	// kept although it has no owner. It is empty if the backend knows every field.
	UnknownField string

	// Group identifies the allocations that one ADD made together, even across pools
	// and backends. They are released together or not at all. No other store may use
	// the same value. It is empty for an allocation without siblings.
	Group string

	// Adoption says whether a later sandbox may get the allocation.
	Adoption Adoption

	// AlsoOn names the nodes on which a pod may get an allocation that is AdoptedOnNode, beside that of the
	// owner. The names are in order, with spaces between them. It is empty if there are none.
	AlsoOn string

	// EmptyHandle is set for a handle that holds no address; IP is not valid. It was
	// left over by a release, or is the start of an ADD.
	EmptyHandle bool

	// ByRuntime is set for an allocation on the node of the run: the container runtime
	// there decides whether its sandbox exists. The state of pods does not, except that a
	// pod that shows the address keeps it. The sandbox may be a prefix of an ID.
	ByRuntime bool

	// Blank is set for an allocation on a node whose ADD broke off before writing an owner.
	// At the release, the store's own lock proves that no ADD is working on it.
	Blank bool

	// Interrupted is set for an allocation whose release was cut short by a crash.
	// Its owner is the one from before the release. It does not wait for a grace
	// period: the run that began the release had proved that it was over.
	Interrupted bool
}

// ID is the identity that the ledger remembers. It contains the token, so an
// allocation that changed hands is a new one.
func (a *Allocation) ID() string {
	return a.Backend + "\x00" + a.Pool + "\x00" + a.Key + "\x00" + a.Token
}

// NeverAdopted reports whether no later sandbox of the pod can get the allocation.
func (a *Allocation) NeverAdopted() bool { return a.Adoption >= NeverAdopted }

// SandboxOwned reports whether each sandbox of the store gets its own allocation.
func (a *Allocation) SandboxOwned() bool { return a.Adoption == SandboxOwned }

// NamesPod reports whether the allocation names a pod by namespace and name.
func (a *Allocation) NamesPod() bool { return a.Owner.Pod.Namespace != "" && a.Owner.Pod.Name != "" }

// ProvesOwner reports whether the store itself says that the named pod has the
// address. Decisions on other allocations may rest on that.
func (a *Allocation) ProvesOwner() bool {
	return a.Unreadable == "" && a.Foreign == "" && a.HoldsAddress()
}

// HoldsAddress reports whether the allocation takes up an address of a store.
func (a *Allocation) HoldsAddress() bool { return !a.EmptyHandle }

// Label names the allocation for people: by its address if it has one.
func (a *Allocation) Label() string {
	if a.IP.IsValid() {
		return a.IP.String()
	}
	return a.Key
}

// Shown returns an address in the form in which pods show it.
func Shown(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

// A PoolRef names a pool of any backend.
type PoolRef struct{ Backend, Name string }

// A Pool is one stored object that holds allocations and is written as a whole: a
// Whereabouts IPPool, a Calico block, one overlapping-range reservation.
type Pool struct {
	Name string // unique within the backend, such as kube-system/10.0.0.0-24

	// Range is the prefix that the pool allocates from. It is not valid for an
	// object that allocates nothing. Such a pool is left out of the report's pools.
	Range netip.Prefix

	// Capacity is how many addresses Range can give to pods; nil if unknown. The report
	// has the part of them that the network of the pool gives, if its backend is a
	// Surveyor.
	Capacity *big.Int

	// Node is the node whose new pods get their addresses from the pool first, such as the one
	// to which a Calico block is affine; empty if there is none, or if the store does not say.
	// Pods of other nodes may have addresses of the pool, too.
	Node string

	// Tunnels has the addresses that nodes have for themselves, such as those of their tunnels, and
	// the names of the nodes, as far as the store says. It is nil if nodes take no addresses from
	// pools of the store: then what a node shows is of another network.
	Tunnels map[netip.Addr]string

	// Exclusive is set if the store gives the addresses of Range out of this pool alone. Two such pools
	// whose ranges overlap give an address to two pods.
	Exclusive bool

	// Network names the network of the addresses. Two pools of different networks
	// may hold the same address. It is empty if the store does not name a network.
	Network string

	// Rest is how long, at least, the store itself keeps an address from pods once it was released. No
	// address of the pool is released before it has been ownerless for as long. RestBy says why.
	Rest   time.Duration
	RestBy string

	// Protected names what protects every address of the pool, such as a file system that other
	// nodes share. It is empty if nothing does.
	Protected string

	Allocations []Allocation
}

// A Network is a part of a store from which pods get addresses: a Calico IPPool, or one
// range of Whereabouts with all of its attachments.
type Network struct {
	Name string // unique within the backend

	// Range is the prefix of the network. It is not valid if the network has none. A network with
	// neither a range nor a pool only says why pods get no address through its attachments.
	Range netip.Prefix

	// Known is set if Usable is known.
	Known bool

	// Usable are the addresses that the store gives to pods, taken or not, without those
	// that are excluded, reserved, or outside the range that is handed out.
	Usable Spans

	// Parts has, by attachment, the Usable addresses that it hands out; nil if each hands out all of them.
	Parts map[string]Spans

	// Withheld says why some addresses are not Usable. What it says of a Usable one does not matter.
	Withheld []Withheld

	// Closed says why pods get no address of the network now, such as "disabled"; empty
	// if they do.
	Closed string

	// Attachments are the network attachments, as namespace/name, through which pods ask for
	// an address of it. Default is set if pods get one without asking.
	Attachments []string
	Default     bool

	// Unsure are the attachments through which pods may get an address of it, too: it is not known
	// which ranges they have.
	Unsure []string

	// Pools are the names of its pools, and Unique is what their Pool.Network is.
	Pools  []string
	Unique string

	// By says which nodes or namespaces get addresses of it, such as "nodeSelector zone == 'a'"; empty if all
	// do. Manual is set if only pods do that name it.
	By     string
	Manual bool

	// Division says how nodes share the network; nil if its addresses are for all of them.
	Division *Division
}

// A Withheld has addresses that no pod gets unless it asks for one of them, and what says so, such as
// "excluded by the network attachment shop/lan".
type Withheld struct {
	Addresses Spans
	Why       string
}

// A Record is a copy of an allocation, as its store had it before the release.
type Record struct {
	Backend string     `json:"backend"`
	Pool    string     `json:"pool"`
	Key     string     `json:"key"`
	IP      string     `json:"ip,omitzero"` // empty if the allocation has no address
	Owner   EntryOwner `json:"owner"`

	// Node is where a run last saw the pod, and Boot and Mirror are set if its sandbox may outlive
	// it there, as in a ledger.Place. They are empty if no run saw it, or if the store itself names
	// that node.
	Node   string `json:"node,omitzero"`
	Boot   string `json:"boot,omitzero"`
	Mirror bool   `json:"mirror,omitzero"`

	// Stored is the data that Backend.Record returned.
	Stored json.RawMessage `json:"stored"`

	// InUse is set by a restore if the pod still has the address, as its status says. Then it
	// goes back even if pods no longer get it.
	InUse bool `json:"-"`
}

// String names the record for people.
func (r Record) String() string {
	return fmt.Sprintf("the record of backend %q, pool %q, key %q", r.Backend, r.Pool, r.Key)
}

// An EntryOwner is the owner of an allocation, as far as the store names it.
type EntryOwner struct {
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Sandbox   string `json:"sandbox,omitempty"`
	Interface string `json:"interface,omitempty"`
	Node      string `json:"node,omitempty"`
}

// Entry returns the owner as reports and records have it.
func (o Owner) Entry() EntryOwner {
	return EntryOwner{Namespace: o.Pod.Namespace, Pod: o.Pod.Name, Sandbox: o.Sandbox, Interface: o.Interface, Node: o.Node}
}

// PodRef returns the pod; zero if the store names none.
func (o EntryOwner) PodRef() PodRef { return PodRef{Namespace: o.Namespace, Name: o.Pod} }
