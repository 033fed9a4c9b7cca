package reaper

import (
	"iter"
	"net/netip"
	"slices"
)

// A podIndex finds the pods of a list by their names, by the addresses that they show, and
// by their sandboxes. It has numbers and no texts of its own, so it takes some 30 bytes a
// pod. The zero podIndex has no pods. It is safe for concurrent use.
type podIndex struct {
	pods []Pod

	names     positions[PodRef]
	sandboxes positions[string]

	// A pod may have several addresses, so these have positions of their own.
	addresses positions[netip.Addr]
	showedBy  []int32 // by the position of an address: that of the pod
}

// newPodIndex returns an index of the pods, which must not change any more.
func newPodIndex(pods []Pod) podIndex {
	x := podIndex{pods: pods}
	addresses, sandboxed := 0, 0 // without Calico, no pod shows a sandbox
	for i := range pods {
		addresses += len(pods[i].Addresses)
		if pods[i].Sandbox != "" {
			sandboxed = len(pods)
		}
	}
	x.names, x.sandboxes = newPositions[PodRef](len(pods)), newPositions[string](sandboxed)
	x.addresses, x.showedBy = newPositions[netip.Addr](addresses), make([]int32, addresses)
	for i, pod := range slices.Backward(pods) {
		x.names.put(i, pod.Ref)
		if pod.Sandbox != "" {
			x.sandboxes.put(i, pod.Sandbox)
		}
		for _, ip := range pod.Addresses {
			addresses--
			x.addresses.put(addresses, ip)
			x.showedBy[addresses] = int32(i)
		}
	}
	return x
}

// named returns the pod of that name, and whether there is one.
func (x *podIndex) named(ref PodRef) (Pod, bool) {
	for i := range x.names.at(ref) {
		if x.pods[i].Ref == ref {
			return x.pods[i], true
		}
	}
	return Pod{}, false
}

// showing yields the names of the pods that show the address, in the order of the list.
func (x *podIndex) showing(ip netip.Addr) iter.Seq[PodRef] {
	return func(yield func(PodRef) bool) {
		last := int32(-1) // two addresses of a pod may have the same hash
		for n := range x.addresses.at(ip) {
			i := x.showedBy[n]
			if i != last && x.pods[i].shows(ip) && !yield(x.pods[i].Ref) {
				return
			}
			last = i
		}
	}
}

// inSandbox returns the name of a pod that shows the sandbox, and whether there is one.
func (x *podIndex) inSandbox(id string) (PodRef, bool) {
	for i := range x.sandboxes.at(id) {
		if x.pods[i].Sandbox == id {
			return x.pods[i].Ref, true
		}
	}
	return PodRef{}, false
}
