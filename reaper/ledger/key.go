package ledger

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A ledgerKey is an identity in a store: the name of the backend, and 64 bits of a hash.
type ledgerKey struct {
	backend string
	hash    uint64
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

// idHash is the hash of an allocation. It covers the token, so an allocation that changed
// hands is a new one.
func (s ledgerSalt) idHash(a *ipam.Allocation) uint64 {
	return s.hash(a.Backend, a.Pool, a.Key, a.Token)
}

// seenHash is the hash for the time since which an allocation has been ownerless.
func (s ledgerSalt) seenHash(a *ipam.Allocation, present bool) uint64 {
	if present {
		return s.hash(a.Backend, a.Pool, a.Key, a.Token, "present")
	}
	return s.idHash(a)
}

// graceHash is the hash of pool, key and pod. It is the same for all sandboxes of the pod.
func (s ledgerSalt) graceHash(a *ipam.Allocation) uint64 {
	return s.hash(a.Backend, a.Pool, a.Key, a.Owner.Pod.String())
}

// spotHash is the hash of pool and key, for any owner.
func (s ledgerSalt) spotHash(a *ipam.Allocation) uint64 { return s.hash(a.Backend, a.Pool, a.Key) }

// placeHash is the hash for the place of a pod: of its sandbox and its address, in any store. A
// sandbox never moves, and that of a pod that came back is another one. If the store names no
// sandbox, it is the hash of the allocation.
func (s ledgerSalt) placeHash(a *ipam.Allocation) uint64 {
	if a.Owner.Sandbox == "" {
		return s.idHash(a)
	}
	return s.hash(a.Owner.Sandbox, a.IP.String())
}

// addKeys adds all keys that a ledger may have for an allocation.
func (s ledgerSalt) addKeys(to map[ledgerKey]bool, a *ipam.Allocation) {
	for _, hash := range [...]uint64{s.idHash(a), s.seenHash(a, true), s.graceHash(a), s.spotHash(a), s.placeHash(a)} {
		to[ledgerKey{a.Backend, hash}] = true
	}
}

// hash hashes an identity with the salt. It does not allocate for an identity of up to 500 bytes.
func (s ledgerSalt) hash(parts ...string) uint64 {
	var room [512]byte
	id := append(room[:0], s[:]...)
	for _, part := range parts {
		id = append(append(id, 0), part...)
	}
	sum := sha256.Sum256(id)
	return binary.BigEndian.Uint64(sum[:])
}
