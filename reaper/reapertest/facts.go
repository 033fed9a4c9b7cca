// Package reapertest has the pods, nodes, allocations and lists that the tests of several packages
// of the domain are about.
package reapertest

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Noon is the time of most tests. The listing and the second look read another clock: the real
// one, or that of a synctest bubble.
var Noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// The pods and addresses of most tests. Web has 10.0.0.1.
var (
	Web   = ipam.PodRef{Namespace: "default", Name: "web"}
	Other = ipam.PodRef{Namespace: "default", Name: "other"}
	IP1   = netip.MustParseAddr("10.0.0.1")
	IP2   = netip.MustParseAddr("10.0.0.2")
)

// WebAllocation returns the allocation that most decisions are about: 10.0.0.1, of the pod web.
func WebAllocation() ipam.Allocation {
	return ipam.Allocation{
		Key: "1", IP: IP1, Token: "t1",
		Owner: ipam.Owner{Pod: Web, Sandbox: "s1", Interface: "net1"},
	}
}

// CalicoOf returns an allocation of Calico, for a sandbox of web on the node.
func CalicoOf(node string) ipam.Allocation {
	return ipam.Allocation{
		Key: "7", IP: IP2, Token: "c1", Group: "handle-s1", Adoption: ipam.SandboxOwned, Created: Noon.Add(-time.Hour),
		Owner: ipam.Owner{Pod: Web, Sandbox: "s1", Node: node},
	}
}

// Lease returns an allocation on a node, of sandbox s1, an hour old at noon.
func Lease() ipam.Allocation {
	return ipam.Allocation{
		Key: "10.0.0.1", IP: IP1, Token: "t1", ByRuntime: true, Created: Noon.Add(-time.Hour),
		Owner: ipam.Owner{Sandbox: "s1", Interface: "eth0"},
	}
}

// Superseded returns a pod that shows 10.0.0.2 on net1, its allocation of that address, and one
// of 10.0.0.1 by an older version of the plugin, which names no interface.
func Superseded() (older, newer ipam.Allocation, pod census.Pod) {
	older, newer = WebAllocation(), WebAllocation()
	older.Owner.Interface, older.Adoption = "", ipam.NeverAdopted
	newer.Key, newer.IP, newer.Token, newer.Owner.Sandbox = "2", IP2, "t2", "s2"
	return older, newer, Showing(Web, IP2)
}

// PoolOf returns a pool of one network with the allocations.
func PoolOf(entries ...ipam.Allocation) ipam.Pool {
	return ipam.Pool{Name: "pool", Network: "-", Allocations: entries}
}

// On returns the interfaces of a pod that shows addresses on one of them.
func On(name string, ips ...netip.Addr) []census.Interface {
	return []census.Interface{{Name: name, Addresses: ips}}
}

// Showing returns a pod that shows addresses on net1.
func Showing(ref ipam.PodRef, ips ...netip.Addr) census.Pod {
	return census.Pod{Ref: ref, Addresses: ips, Interfaces: On("net1", ips...)}
}

// Finished returns the pod in phase Succeeded or Failed.
func Finished(pod census.Pod) census.Pod {
	pod.Finished = true
	return pod
}

// Hanging returns a pod on n1 that shows an address of Calico, and that should have ended five
// minutes before noon.
func Hanging() census.Pod {
	pod := Showing(Web, IP2)
	pod.Node, pod.Sandbox, pod.InStatus = "n1", "s1", 1
	pod.Deadline = Noon.Add(-5 * time.Minute)
	return pod
}

// Mirrored returns the mirror of a static pod on n1.
func Mirrored() census.Pod {
	pod := Hanging()
	pod.Deadline, pod.Mirror = time.Time{}, true
	return pod
}

// Booted returns a ready node in its nth boot.
func Booted(boot string) census.Node {
	return census.Node{Name: "n1", Ready: true, Boot: boot, Since: Noon.Add(-24 * time.Hour), Created: Noon.Add(-25 * time.Hour)}
}

// Allocations returns n allocations of the pods app-0, app-1 and so on.
func Allocations(n int) []ipam.Allocation {
	as := make([]ipam.Allocation, n)
	for i := range as {
		as[i] = WebAllocation()
		as[i].Key, as[i].Token = fmt.Sprint(i), fmt.Sprint("t", i)
		as[i].IP = netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
		as[i].Owner.Pod.Name = fmt.Sprintf("app-%d", i)
	}
	return as
}

// TunnelOn returns a ready node that shows the address as that of a tunnel.
func TunnelOn(name string, ip netip.Addr) census.Node {
	return census.Node{Name: name, Ready: true, Tunnels: map[netip.Addr]string{ip: "projectcalico.org/IPv4VXLANTunnelAddr"}}
}
