package ledger

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A ledgerKey stands for an identity: 64 bits of its hash, and the tag of its backend.
type ledgerKey struct {
	tag  backendTag
	hash uint64
}

// A backendTag stands for a backend. From the tag of a key, a run knows the store of an
// entry even if it did not list that store.
type backendTag uint32

// tagOf returns the tag of a backend: the FNV-1a hash of its name.
func tagOf(backend string) backendTag {
	tag := backendTag(2166136261)
	for i := range len(backend) {
		tag = (tag ^ backendTag(backend[i])) * 16777619
	}
	return tag
}

// compare orders keys by their tags, and then by their hashes.
func (k ledgerKey) compare(other ledgerKey) int {
	return cmp.Or(cmp.Compare(k.tag, other.tag), cmp.Compare(k.hash, other.hash))
}

// A ledgerSalt goes into every hash of a ledger, and differs from ledger to ledger. Tenants
// choose a part of an identity, such as the name of a pod: without the salt, they could look
// for identities with the same hash. A ledger that was never stored has none.
type ledgerSalt [16]byte

// newSalt returns the salt of a ledger that this process is the first to store.
var newSalt = sync.OnceValue(func() (s ledgerSalt) {
	_, _ = rand.Read(s[:]) // it never fails
	return s
})

// Salted returns the ledger with a salt.
func (l Ledger) Salted() Ledger {
	if l.salt == (ledgerSalt{}) {
		l.salt = newSalt()
	}
	return l
}

// idKey is the key of an allocation. It covers the token, so an allocation that changed
// hands is a new one.
func (s ledgerSalt) idKey(a *ipam.Allocation) ledgerKey {
	return s.key(a.Backend, a.Pool, a.Key, a.Token)
}

// seenKey is the key of the time since which an allocation has been ownerless.
func (s ledgerSalt) seenKey(a *ipam.Allocation, present bool) ledgerKey {
	if present {
		return s.key(a.Backend, a.Pool, a.Key, a.Token, "present")
	}
	return s.idKey(a)
}

// placeKey is the key of pool, key and pod. It is the same for all sandboxes of the pod.
func (s ledgerSalt) placeKey(a *ipam.Allocation) ledgerKey {
	return s.key(a.Backend, a.Pool, a.Key, a.Owner.Pod.String())
}

// spotKey is the key of what a restore put back at a pool and key: that of its sandbox or, if the
// store names none, of its pod. A later owner has another one.
func (s ledgerSalt) spotKey(a *ipam.Allocation) ledgerKey {
	if a.Owner.Sandbox != "" {
		return s.key(a.Backend, a.Pool, a.Key, "restored", a.Owner.Sandbox)
	}
	return s.key(a.Backend, a.Pool, a.Key, "restored", "", a.Owner.Pod.String())
}

// homeKey is the key of the sandbox that has pool and key. A sandbox never moves: this says
// nothing about a pod that came back on another node.
func (s ledgerSalt) homeKey(a *ipam.Allocation) ledgerKey {
	return s.key(a.Backend, a.Pool, a.Key, "sandbox", a.Owner.Sandbox)
}

// unreadKey stands for the pools that could not be read when a store was listed.
func (s ledgerSalt) unreadKey(l ipam.Listing) ledgerKey {
	names := []string{"unread"}
	for _, err := range l.Errors {
		var unreadable *ipam.PoolError
		if errors.As(err, &unreadable) {
			names = append(names, unreadable.Pool)
		} else {
			names = append(names, err.Error())
		}
	}
	slices.Sort(names[1:])
	return s.key(l.Backend, names...)
}

// addKeys adds all keys that a ledger may have for an allocation, except homeKey.
func (s ledgerSalt) addKeys(to map[ledgerKey]bool, a *ipam.Allocation) {
	for _, k := range [...]ledgerKey{s.idKey(a), s.seenKey(a, true), s.placeKey(a), s.spotKey(a)} {
		to[k] = true
	}
}

// key hashes an identity of a backend with the salt. It does not allocate for an identity of
// up to 500 bytes.
func (s ledgerSalt) key(backend string, parts ...string) ledgerKey {
	var room [512]byte
	id := append(append(room[:0], s[:]...), backend...)
	for _, part := range parts {
		id = append(append(id, 0), part...)
	}
	sum := sha256.Sum256(id)
	return ledgerKey{tagOf(backend), binary.BigEndian.Uint64(sum[:])}
}
