package reaper

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
)

// changes are the pods that were written or deleted after a list was made. They override
// the list, which several goroutines share and which never changes.
type changes struct {
	pods      map[PodRef]*Pod         // nil for a pod that was deleted
	byAddress map[netip.Addr][]PodRef // of the pods that were written
	sandboxes map[string][]PodRef
}

// following returns a copy of the population to which changes may be applied. It shares the
// list.
func (p population) following() population {
	p.changed = &changes{make(map[PodRef]*Pod), make(map[netip.Addr][]PodRef), make(map[string][]PodRef)}
	p.starting = maps.Clone(p.starting)
	p.crowded, p.crowdedEnded = p.crowded.clone(), p.crowdedEnded.clone()
	return p
}

// apply makes the pod of that name the given one. A nil pod does not exist any more. The
// time that it takes does not depend on the number of pods.
//
// A pod that showed too much counts as one until the end: in doubt, it keeps.
func (p *population) apply(ref PodRef, pod *Pod) {
	old, existed := p.current(ref)
	if existed {
		p.count(old, -1)
	}
	c := p.changed
	if last := c.pods[ref]; last != nil {
		for _, ip := range last.Addresses {
			drop(c.byAddress, ip, ref)
		}
		drop(c.sandboxes, last.Sandbox, ref)
	}
	if pod == nil {
		c.pods[ref] = nil
		if _, listed := p.listed.named(ref); !listed {
			delete(c.pods, ref)
		}
		return
	}
	c.pods[ref] = pod
	for _, ip := range pod.Addresses {
		c.byAddress[ip] = append(c.byAddress[ip], ref)
	}
	if pod.Sandbox != "" {
		c.sandboxes[pod.Sandbox] = append(c.sandboxes[pod.Sandbox], ref)
	}
	p.count(*pod, 1)
	if !existed || old.TooMuch != pod.TooMuch || old.Finished != pod.Finished {
		p.addCrowded(*pod)
	}
}

// drop removes a reference from an index.
func drop[K comparable](index map[K][]PodRef, key K, ref PodRef) {
	refs := index[key]
	at := slices.Index(refs, ref)
	switch {
	case at < 0:
	case len(refs) == 1:
		delete(index, key)
	default:
		index[key] = slices.Delete(refs, at, at+1)
	}
}

// overrides reports whether the pod was written or deleted after the list.
func (c *changes) overrides(ref PodRef) bool {
	if c == nil {
		return false
	}
	_, changed := c.pods[ref]
	return changed
}

// current returns the pod of that name, and whether it exists.
func (p *population) current(ref PodRef) (Pod, bool) {
	if p.changed.overrides(ref) {
		pod := p.changed.pods[ref]
		if pod == nil {
			return Pod{}, false
		}
		return *pod, true
	}
	return p.listed.named(ref)
}

// refsShowing yields the names of the pods that show the address.
func (p *population) refsShowing(ip netip.Addr) iter.Seq[PodRef] {
	return func(yield func(PodRef) bool) {
		if p.changed != nil {
			for _, ref := range p.changed.byAddress[ip] {
				if !yield(ref) {
					return
				}
			}
		}
		for ref := range p.listed.showing(ip) {
			if !p.changed.overrides(ref) && !yield(ref) {
				return
			}
		}
	}
}

// showsSandbox returns a pod that shows the sandbox, and whether there is one.
func (p *population) showsSandbox(id string) (PodRef, bool) {
	for ref := range p.listed.inSandbox(id) {
		if !p.changed.overrides(ref) {
			return ref, true
		}
	}
	if p.changed != nil && len(p.changed.sandboxes[id]) > 0 {
		return p.changed.sandboxes[id][0], true
	}
	return PodRef{}, false
}
