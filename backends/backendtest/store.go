package backendtest

import "github.com/ip-reaper/ip-reaper/reaper/ipam"

// A Store is the harness of one store, which starts empty. Its methods are safe for concurrent
// use.
type Store interface {
	// Backend returns a new backend over the store, as after a restart of the
	// program.
	Backend() ipam.Backend

	// Reserve allocates an address as the plugin's ADD does for this pod, sandbox and
	// interface. If the plugin lets the new sandbox adopt an entry that the pod had before, so
	// does Reserve. Otherwise it takes a free address. The suite names the pools. They are
	// created on first use, with room for 32 addresses each. A pool of the suite is one pool of
	// the backend, or one for each address.
	//
	// Reserve returns the entry as the backend should list it: pool, key, address, and the
	// parts of the owner that the store keeps. The suite does not compare Backend, Network,
	// Token, Created, Group, and Adoption.
	Reserve(pool string, owner ipam.Owner) (ipam.Allocation, error)

	// Free frees the address as the plugin's DEL does for this pod, sandbox and
	// interface. An entry that another sandbox has adopted stays.
	Free(pool string, owner ipam.Owner) error

	// Snapshot returns the content of the store: entries by Place, and any other content by
	// names that the harness chooses. It omits everything that the release of another entry, or
	// an undone release, may change, such as the version of an object. Everything else is as
	// stored.
	Snapshot() (map[string]string, error)
}

// A Spoiler is a Store that can hold entries that its backend cannot read.
type Spoiler interface {
	Store

	// Spoil adds such an entry to the pool. It returns its pool and key.
	Spoil(pool string) (ipam.Allocation, error)
}

// An Obscurer is a Store that can hold an object outside its pools that its backend cannot decode, such as
// one that says which addresses pods get.
type Obscurer interface {
	Store

	// Obscure adds such an object. It is about the addresses of the pool.
	Obscure(pool string) error
}

// A Sharer is a Store in which several pools of a network may give the same address.
type Sharer interface {
	Store

	// Share gives the address of an allocation of pool "a" to an owner, from the pool "shared".
	Share(a ipam.Allocation, owner ipam.Owner) (ipam.Allocation, error)
}

// A Fumbler is a Store whose backend may release with more writes than the one that frees the
// entry. If a later one fails, the backend returns ipam.ErrUnfinished.
type Fumbler interface {
	Store

	// Fumble makes one such later write fail in the next release.
	Fumble()
}

// Place returns the key of an entry in a snapshot: pool/key.
func Place(r ipam.Allocation) string { return r.Pool + "/" + r.Key }
