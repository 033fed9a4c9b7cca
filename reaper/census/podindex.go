package census

import (
	"iter"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A podIndex finds the pods of a list by their names, by the addresses that they show, and
// by their sandboxes. The zero podIndex has no pods. It is safe for concurrent use.
type podIndex struct {
	pods []Pod

	// By each of these, the positions of the pods in the list: in ascending order, and of a
	// sandbox the first.
	names     map[ipam.PodRef]int32
	addresses map[netip.Addr][]int32
	sandboxes map[string]int32
}

// newPodIndex returns an index of the pods, which must not change any more.
func newPodIndex(pods []Pod) podIndex {
	x := podIndex{pods, make(map[ipam.PodRef]int32, len(pods)), make(map[netip.Addr][]int32, len(pods)), make(map[string]int32)}
	for n, pod := range pods {
		i := int32(n)
		x.names[pod.Ref] = i
		if _, known := x.sandboxes[pod.Sandbox]; pod.Sandbox != "" && !known {
			x.sandboxes[pod.Sandbox] = i
		}
		for _, ip := range pod.Addresses {
			x.addresses[ip] = append(x.addresses[ip], i)
		}
	}
	return x
}

// named returns the pod of that name, and whether there is one.
func (x *podIndex) named(ref ipam.PodRef) (Pod, bool) {
	i, found := x.names[ref]
	if !found {
		return Pod{}, false
	}
	return x.pods[i], true
}

// Showing yields the names of the pods that show the address, in the order of the list.
func (x *podIndex) showing(ip netip.Addr) iter.Seq[ipam.PodRef] {
	return func(yield func(ipam.PodRef) bool) {
		for _, i := range x.addresses[ip] {
			if !yield(x.pods[i].Ref) {
				return
			}
		}
	}
}

// inSandbox returns the name of a pod that shows the sandbox, and whether there is one.
func (x *podIndex) inSandbox(id string) (ipam.PodRef, bool) {
	i, found := x.sandboxes[id]
	if !found {
		return ipam.PodRef{}, false
	}
	return x.pods[i].Ref, true
}
