package backendtest

import "github.com/ip-reaper/ip-reaper/reaper"

// A Store is the harness of one store, empty at first. Its methods are safe for
// concurrent use.
type Store interface {
	// Backend returns the backend over the store: a new one each time, as
	// after a restart.
	Backend() reaper.Backend

	// Reserve does what the plugin's ADD does for this pod, sandbox and
	// interface. If that means that an entry which the pod had before is
	// adopted by the new sandbox, then so it is here; else a free address is
	// taken. Pools are the suite's names, made on first use, with room for 32
	// addresses each; a pool is a unit, or each of its addresses is one.
	//
	// It returns the entry as the backend should list it: unit, key, address,
	// and of the owner what the store keeps. Token, Created, Group and SandboxOwned
	// are not looked at; the other fields are as those of any pod's entry.
	Reserve(pool string, owner reaper.Owner) (reaper.Allocation, error)

	// Free does what the plugin's DEL does for this pod, sandbox and
	// interface. An entry that another sandbox has now stays.
	Free(pool string, owner reaper.Owner) error

	// Snapshot returns the content of the store, by Place for entries and by
	// names of the harness's own for what else there is. It leaves out what
	// the release of another entry, or a release that is taken back, may
	// change, such as the version of an object. All else is as it is stored.
	Snapshot() (map[string]string, error)
}

// A Spoiler is a Store that can hold entries which its backend cannot
// understand.
type Spoiler interface {
	Store

	// Spoil puts such an entry into the pool, beside the others, and returns
	// where it is: its pool and key.
	Spoil(pool string) (reaper.Allocation, error)
}

// A Fumbler is a Store whose backend may take more writes for a release than the
// one that lets the entry go, and answers ErrUnfinished where a later one fails.
type Fumbler interface {
	Store

	// Fumble has such a write fail in the next release, once.
	Fumble()
}

// Place is the key of an entry in a snapshot.
func Place(r reaper.Allocation) string { return r.Pool + "/" + r.Key }
