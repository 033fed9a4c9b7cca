package reaper

import (
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

// An Owner is what a store knows of whom it gave an address to. Any field may
// be empty.
type Owner struct {
	Pod       PodRef
	UID       string // of the pod
	Sandbox   string // container ID of the pod sandbox
	Interface string // inside the sandbox, such as net1

	// Node is where the sandbox is; where the store does not say, Judge sets it
	// to where the pod was last seen.
	Node string
}

// whom names the owner for people, as far as it is known.
func (o Owner) whom() string {
	switch {
	case o.Pod != PodRef{}:
		return "pod " + o.Pod.String()
	case o.Sandbox != "":
		return "sandbox " + o.Sandbox
	default:
		return "somebody that it does not name"
	}
}

// A Allocation is one address that a store holds, as it was listed.
type Allocation struct {
	Backend string // set by TakeInventory
	Pool    string // set by TakeInventory: the name of the pool that holds it
	Key     string // the entry's own name within the pool
	IP      netip.Addr
	Owner   Owner

	// Token is what the store compares before it lets the entry go, so that it
	// refuses if the entry changed hands. Without one nothing is released.
	Token string

	// Created is when the address was reserved; zero where the store does not
	// say.
	Created time.Time

	// Unreadable says in words why the entry could not be understood. Such an
	// entry is reported and never released; its other fields may be empty.
	Unreadable string

	// Foreign says in words what the address was reserved for where that is no
	// pod, such as a tunnel or a virtual machine. Such an entry is reported and
	// never released.
	Foreign string

	// Protected says in words by what somebody keeps the address back, such as a
	// range that is excluded from a network. Such an entry is not released when
	// it has no owner.
	Protected string

	// Protects is set for an entry that holds no address itself, but keeps some
	// back while their pod is gone (ReservedIP).
	Protects *Protection

	// Inferred is set where the store does not name the pod, and the backend
	// read the name out of something else.
	Inferred bool

	// Group names what ties entries together that one sandbox got at one time,
	// also in other pools: the same within a backend. They are released
	// together or not at all. Empty for an entry that stands alone.
	Group string

	// SandboxOwned is set where each sandbox gets an entry of its own and adopts
	// none, so that the entry of another sandbox than its pod shows has been
	// replaced.
	SandboxOwned bool

	// EmptyHandle is set for what is left of a allocation and holds no address any
	// more; IP is not valid. It may also be the beginning of one.
	EmptyHandle bool

	// Interrupted is set for an entry whose release a crash cut short. Its
	// owner is the one it had before, and the suspicion is ripe: the run that
	// began the release had proved it.
	Interrupted bool
}

// id is the identity that the ledger remembers. It contains the token, so that
// an entry that changed hands is a new one.
func (r Allocation) id() string {
	return r.Backend + "\x00" + r.Pool + "\x00" + r.Key + "\x00" + r.Token
}

// place is where the entry stands and for which pod, whoever of its sandboxes has
// it.
func (r Allocation) place() string {
	return r.Backend + "\x00" + r.Pool + "\x00" + r.Key + "\x00" + r.Owner.Pod.String()
}

// saysWhose reports whether the store itself says that the pod which the entry
// names has the address: what another verdict may rest on.
func (r Allocation) saysWhose() bool {
	return r.Unreadable == "" && r.Foreign == "" && !r.Inferred && r.holdsAddress()
}

// holdsAddress reports whether the entry takes an address of a store.
func (r Allocation) holdsAddress() bool { return !r.EmptyHandle && r.Protects == nil }

// what names the entry for people: by its address if it has one.
func (r Allocation) what() string {
	if r.IP.IsValid() {
		return r.IP.String()
	}
	return r.Key
}

// An Object names an object of the Kubernetes API. Namespace is empty for one
// that has none.
type Object struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	UID        string
}

// A Pool is one stored object that holds allocations, and that is written as
// a whole: a pool, a block, a allocation object of its own.
type Pool struct {
	Name string // unique within the backend, such as kube-system/10.0.0.0-24

	// Range is what the pool hands addresses out of. It is not valid for a
	// pool that is no pool; such a pool is left out of the report's pools.
	Range netip.Prefix

	// Capacity is how many addresses Range can give to pods; nil if unknown.
	Capacity *big.Int

	// Object is the pool in the Kubernetes API; zero where it is not there, or
	// not there any more when its entries are released.
	Object Object

	// Network names the network that the addresses belong to. The same address
	// may be in use in two networks at once, and pools of different networks
	// never compete for it. Empty means that the store does not tell.
	Network string

	Allocations []Allocation
}
