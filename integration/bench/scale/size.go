package main

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

const (
	poolEntries = 5000 // addresses allocated in a full pool
	poolBits    = 16   // prefix length of a pool
	perNode     = 30   // pods on a node
	tenants     = 20   // namespaces
	network     = "tenants/net"
)

// The maximum numbers of pods. More of 5 KB do not fit into etcd, and more with Calico do not fit
// on 5,000 nodes.
const (
	mostPods       = 200_000
	mostCalicoPods = 273_000
)

// A size is the number of pods of a cluster. Each pod has an entry in an IPPool and an overlapping
// reservation, or an address in a block and a handle. Of these, another tenth is stale: its pod is
// gone.
type size int

// sizes parses a list of sizes, such as 10000,20000.
func sizes(list string, most int) ([]size, error) {
	var all []size
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 10 || n > most {
			return nil, fmt.Errorf("-pods %q: want numbers from 10 to %d with commas between them", list, most)
		}
		all = append(all, size(n))
	}
	return all, nil
}

// stale is the number of stale entries, and of stale overlapping reservations.
func (s size) stale() int { return int(s) / 10 }

// total is the number of all entries, and of all overlapping reservations.
func (s size) total() int { return int(s) + s.stale() }

// nodes is enough for all pods, including those that are gone.
func (s size) nodes() int { return (s.total() + perNode - 1) / perNode }

func (s size) pools() int { return (s.total() + poolEntries - 1) / poolEntries }

// An entry is one address, with its entry in a pool and its overlapping reservation.
// The stale ones are spread evenly over all pools.
type entry int

// stale reports whether the pod of the entry is gone.
func (e entry) stale() bool { return e%11 == 10 }

// live is the nth entry that has a pod, and stale the nth that has none.
func live(n int) entry  { return entry(n + n/10) }
func stale(n int) entry { return entry(n*11 + 10) }

func (e entry) pool() int { return int(e) / poolEntries }

// offset is the entry's key in its pool.
func (e entry) offset() int { return int(e)%poolEntries + 1 }

func (e entry) ip() netip.Addr { return address(e.pool()<<(32-poolBits) + e.offset()) }

// address returns the nth address of 10.0.0.0/8.
func address(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10 + byte(n>>24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// primary returns a pod's address from another plugin.
func primary(e entry) netip.Addr {
	return netip.AddrFrom4([4]byte{172, 16 + byte(e>>16), byte(e >> 8), byte(e)})
}

func poolRange(pool int) netip.Prefix {
	return netip.PrefixFrom(address(pool<<(32-poolBits)), poolBits)
}

// poolName returns Whereabouts' name for the IPPool of an unnamed network.
func poolName(pool int) string {
	return strings.ReplaceAll(poolRange(pool).String(), "/", "-")
}

func (e entry) namespace() string { return tenant(int(e) % tenants) }

func tenant(n int) string { return fmt.Sprintf("tenant-%d", n) }

// pod is the name of the entry's pod, as from a Deployment.
func (e entry) pod() string { return fmt.Sprintf("frontend-7d9c5b8f6-%05x", int(e)) }

func (e entry) podRef() string { return e.namespace() + "/" + e.pod() }

func (e entry) node() string { return nodeName(int(e) / perNode) }

func nodeName(n int) string { return fmt.Sprintf("node-%d.example.internal", n) }

// sandbox is the ID of the entry's pod sandbox.
func (e entry) sandbox() string { return fmt.Sprintf("%064x", uint64(e)*0x9e3779b97f4a7c15+1) }

// uid is the UID of an object of one kind.
func uid(kind byte, n int) string { return fmt.Sprintf("%02x000000-0000-4000-8000-%012x", kind, n) }
