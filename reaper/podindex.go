package reaper

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"net/netip"
	"slices"
)

// A podIndex finds the pods of a list by their names, by the addresses that they show, and
// by their sandboxes. It has numbers and no texts of its own, so it takes some 20 bytes a
// pod. The zero podIndex has no pods. It is safe for concurrent use.
type podIndex struct {
	pods []Pod

	names, addresses, sandboxes buckets
}

// newPodIndex returns an index of the pods, which must not change any more.
func newPodIndex(pods []Pod) podIndex {
	x := podIndex{pods: pods}
	addresses, sandboxes := 0, 0
	for i := range pods {
		addresses += len(pods[i].Addresses)
		sandboxes += min(1, len(pods[i].Sandbox))
	}
	x.names, x.addresses, x.sandboxes = newBuckets(len(pods)), newBuckets(addresses), newBuckets(sandboxes)
	for i, pod := range slices.Backward(pods) { // so that find goes in the order of the list
		add(&x.names, pod.Ref, i)
		for _, ip := range pod.Addresses {
			add(&x.addresses, ip, i)
		}
		if pod.Sandbox != "" {
			add(&x.sandboxes, pod.Sandbox, i)
		}
	}
	return x
}

// named returns the pod of that name, and whether there is one.
func (x *podIndex) named(ref PodRef) (Pod, bool) {
	for i := range find(&x.names, ref) {
		if x.pods[i].Ref == ref {
			return x.pods[i], true
		}
	}
	return Pod{}, false
}

// showing returns the names of the pods that show the address, in the order of the list.
func (x *podIndex) showing(ip netip.Addr) []PodRef {
	var refs []PodRef
	last := -1 // two addresses of a pod may be in one bucket
	for i := range find(&x.addresses, ip) {
		if i != last && x.pods[i].shows(ip) {
			refs = append(refs, x.pods[i].Ref)
		}
		last = i
	}
	return refs
}

// inSandbox returns the names of the pods that show the sandbox, in the order of the list.
func (x *podIndex) inSandbox(id string) []PodRef {
	var refs []PodRef
	for i := range find(&x.sandboxes, id) {
		if x.pods[i].Sandbox == id {
			refs = append(refs, x.pods[i].Ref)
		}
	}
	return refs
}

// buckets is a hash table of places in a list. A key may have several places. The zero
// buckets has none.
type buckets struct {
	last  []uint32 // by bucket: the entry that was added last; 0 is none
	next  []uint32 // by entry: the entry of the bucket that was added before
	place []uint32 // by entry
}

// newBuckets returns a table with room for so many entries.
func newBuckets(n int) buckets {
	b := buckets{last: make([]uint32, 1<<bits.Len(uint(n)))}
	b.next, b.place = make([]uint32, 1, n+1), make([]uint32, 1, n+1) // entry 0 is none
	return b
}

// bucketSeed makes it unknown to tenants which names have the same bucket.
var bucketSeed = maphash.MakeSeed()

// bucket returns the bucket of a key.
func bucket[K comparable](b *buckets, key K) *uint32 {
	return &b.last[maphash.Comparable(bucketSeed, key)&uint64(len(b.last)-1)]
}

// add adds a place of a key.
func add[K comparable](b *buckets, key K, place int) {
	last := bucket(b, key)
	b.next, b.place = append(b.next, *last), append(b.place, uint32(place))
	*last = uint32(len(b.next) - 1)
}

// find yields the places of a key, and maybe others. The one that was added last is the
// first.
func find[K comparable](b *buckets, key K) iter.Seq[int] {
	return func(yield func(int) bool) {
		if len(b.last) == 0 {
			return
		}
		for entry := *bucket(b, key); entry != 0; entry = b.next[entry] {
			if !yield(int(b.place[entry])) {
				return
			}
		}
	}
}
