package whereabouts_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// The tests of this file are on objects that are written by hand, after the sources of
// Whereabouts v0.4.1, v0.5.4, v0.6, v0.6.2 and v0.6.3: no recording has them. Until 0.7, an
// entry has no interface, and a reservation has the sandbox. Until 0.4.1, an entry names a
// sandbox only. Until 0.5.4, it does so too if the runtime did not tell the plugin the pod.

// Sandboxes as CRI-O, containerd and dockershim name them.
const (
	one   = "00000000000000000000000000000000000000000000000000000000000000a1"
	two   = "00000000000000000000000000000000000000000000000000000000000000a2"
	three = "00000000000000000000000000000000000000000000000000000000000000a3"
)

// ofPod and ofSandbox are an entry of a pool.
func ofPod(id, podRef string) string { return `{"id":"` + id + `","podref":"` + podRef + `"}` }
func ofSandbox(id string) string     { return `{"id":"` + id + `"}` }

// reservedFor and reservedBySandbox are the spec of a reservation.
func reservedFor(id, podRef string) string {
	return `{"containerid":"` + id + `","podref":"` + podRef + `"}`
}
func reservedBySandbox(id string) string { return `{"containerid":"` + id + `"}` }
func shows(ips ...string) cluster.PodOption {
	return cluster.Networks(cluster.Attached("a/lan", "net1", ips...))
}

func TestFormsOfOldVersionsByHand(t *testing.T) {
	sandboxesOnly := func(f *fixture) {
		f.load(pools, pool("10.0.0.0-24", "10.0.0.0/24", `{"1":`+ofSandbox(one)+`,"2":`+ofSandbox(two)+`}`))
		f.pod("live", shows("10.0.0.1"))
	}
	mixed := func(f *fixture) {
		f.load(pools, pool("10.0.0.0-24", "10.0.0.0/24", `{"1":`+ofPod(one, "a/live")+`,"2":`+ofPod(two, "a/gone")+`,"3":`+ofSandbox(three)+`}`))
		f.load(reservations, reservation("10.0.0.1", reservedFor(one, "a/live")), reservation("10.0.0.2", reservedFor(two, "a/gone")),
			reservation("10.0.0.3", reservedBySandbox(three)))
		f.pod("live", shows("10.0.0.1"))
	}
	for _, tt := range []struct {
		name   string
		policy string
		set    func(*fixture)
		want   verdicts
	}{
		{"0.4.1, sandboxes only", "", sandboxesOnly, verdicts{
			"inUse AddressInUse kept": {"10.0.0.0-24 10.0.0.1"},
			"held OwnerUnknown kept":  {"10.0.0.0-24 10.0.0.2"},
		}},
		{"0.5.4, with pods and without", "", mixed, verdicts{
			kept: both("10.0.0.0-24", "10.0.0.1", "10.0.0.1"), released: both("10.0.0.0-24", "10.0.0.2", "10.0.0.2"),
			"held OwnerUnknown kept": both("10.0.0.0-24", "10.0.0.3", "10.0.0.3"),
		}},
		// A reservation that names no pod is held under any policy.
		{"0.5.4, with pods and without, released by policy", "pods: {unnamed: release}\n", mixed, verdicts{
			kept: both("10.0.0.0-24", "10.0.0.1", "10.0.0.1"), released: both("10.0.0.0-24", "10.0.0.2", "10.0.0.2"),
			"orphan SandboxAbsent released": {"10.0.0.0-24 10.0.0.3"}, "held OwnerUnknown kept": {"10.0.0.3"},
		}},
		// Before 0.6.1, the API server refused the name of a reservation that ends with colons.
		{"0.6, IPv6, and an address without a reservation", "", func(f *fixture) {
			f.load(pools, pool("fd00-1-2-3---64", "fd00:1:2:3::/64", `{"1":`+ofPod(one, "a/live")+`,"2":`+ofPod(two, "a/gone")+
				`,"1125899906842624":`+ofPod(two, "a/gone")+`}`))
			f.load(reservations, reservation("fd00-1-2-3--1", reservedFor(one, "a/live")), reservation("fd00-1-2-3--2", reservedFor(two, "a/gone")))
			f.pod("live", shows("fd00:1:2:3::1"))
		}, verdicts{
			kept:     both("fd00-1-2-3---64", "fd00:1:2:3::1", "fd00-1-2-3--1"),
			released: append(both("fd00-1-2-3---64", "fd00:1:2:3::2", "fd00-1-2-3--2"), "fd00-1-2-3---64 fd00:1:2:3:4::"),
		}},
		// The pool has the name of the network, and the reservation does not have it yet.
		{"0.6.2, a named network", "", func(f *fixture) {
			f.load(pools, pool("blue-10.0.0.0-24", "10.0.0.0/24", `{"1":`+ofPod(one, "a/live")+`,"2":`+ofPod(two, "a/gone")+`}`))
			f.load(reservations, reservation("10.0.0.1", reservedFor(one, "a/live")), reservation("10.0.0.2", reservedFor(two, "a/gone")))
			f.pod("live", shows("10.0.0.1"))
		}, verdicts{
			kept: both("blue-10.0.0.0-24", "10.0.0.1", "10.0.0.1"), released: both("blue-10.0.0.0-24", "10.0.0.2", "10.0.0.2"),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			tt.set(f)
			f.play(tt.policy, tt.want)
		})
	}
}

// A pod of an old version that shows nothing has its address all the same: an entry without an
// interface, and one that names a sandbox only, are not stale for what they lack (promise 2).
func TestOldFormsOfPodsThatShowNothingByHand(t *testing.T) {
	f := newFixture(t)
	f.load(pools, pool("10.0.0.0-24", "10.0.0.0/24", `{"1":`+ofPod(one, "a/live")+`,"2":`+ofSandbox(two)+`}`))
	f.load(reservations, reservation("10.0.0.1", reservedFor(one, "a/live")))
	f.pod("live", cluster.Annotation("k8s.v1.cni.cncf.io/networks", "lan"))
	f.play("pods: {unnamed: release}\n", verdicts{
		kept: both("10.0.0.0-24", "10.0.0.1", "10.0.0.1"), "held OwnerUnknown kept": {"10.0.0.0-24 10.0.0.2"},
	})
}
