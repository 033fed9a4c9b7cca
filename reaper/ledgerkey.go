package reaper

import (
	"bytes"
	"crypto/sha256"
	"sync"
)

// A ledgerKey stands for an identity: 104 bits of its SHA-256, and the tag of its
// backend. Tenants choose a part of an identity, such as the name of a pod, so the hash
// must be cryptographic. The hash comes first: it spreads the keys over the shards.
type ledgerKey [hashSize + tagSize]byte

const (
	hashSize = 13
	tagSize  = 3
)

// A backendTag stands for a backend. By the tag of a key, a run knows of which store an
// entry is although it did not list that store.
type backendTag [tagSize]byte

// tag returns the tag of the backend.
func (k ledgerKey) tag() backendTag { return backendTag(k[hashSize:]) }

// compare orders keys by their bytes.
func (k ledgerKey) compare(other ledgerKey) int { return bytes.Compare(k[:], other[:]) }

// shard returns the shard of the key, if there are so many: from 0 to shards-1.
func (k ledgerKey) shard(shards int) int { return int(k[0]) * shards / (1 << 8) }

// idKey is the key of an allocation. It covers the token, so an allocation that changed
// hands is a new one.
func idKey(a *Allocation) ledgerKey { return keyOf(a.Backend, a.Pool, a.Key, a.Token) }

// seenKey is the key of the time since which an allocation has been ownerless.
func seenKey(a *Allocation, present bool) ledgerKey {
	if present {
		return keyOf(a.Backend, a.Pool, a.Key, a.Token, "present")
	}
	return idKey(a)
}

// placeKey is the key of pool, key and pod. It is the same for all sandboxes of the pod.
func placeKey(a *Allocation) ledgerKey {
	return keyOf(a.Backend, a.Pool, a.Key, a.Owner.Pod.String())
}

// spotKey is the key of pool and key, for any owner.
func spotKey(a *Allocation) ledgerKey { return keyOf(a.Backend, a.Pool, a.Key) }

// keyOf hashes an identity of a backend. It does not allocate for an identity of up to
// 512 bytes.
func keyOf(backend string, parts ...string) (k ledgerKey) {
	var room [512]byte
	id := append(room[:0], backend...)
	for _, part := range parts {
		id = append(append(id, 0), part...)
	}
	sum, tag := sha256.Sum256(id), tagOf(backend)
	copy(k[:], sum[tagSize:])
	copy(k[hashSize:], tag[:])
	return k
}

// tags has the tags of the first backends that were asked for.
var tags struct {
	sync.RWMutex
	of map[string]backendTag
}

// maxTags is the largest number of tags that are kept.
const maxTags = 64

// tagOf returns the tag of a backend: 24 bits of its SHA-256.
func tagOf(backend string) backendTag {
	tags.RLock()
	tag, known := tags.of[backend]
	tags.RUnlock()
	if known {
		return tag
	}
	sum := sha256.Sum256([]byte(backend))
	tag = backendTag(sum[:])
	tags.Lock()
	defer tags.Unlock()
	if tags.of == nil {
		tags.of = make(map[string]backendTag)
	}
	if len(tags.of) < maxTags {
		tags.of[backend] = tag
	}
	return tag
}
