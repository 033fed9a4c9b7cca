package reaper

import (
	"fmt"
	"iter"
	"net/netip"
	"strconv"
	"strings"
)

// Size returns the number of pods.
func (c Census) Size() int { return len(c.listed.pods) }

// figures returns the numbers of pods that are not finished, and of nodes. Finished pods
// are removed many at a time, and no list is incomplete then. On a node, the sandboxes
// count in place of the pods.
func (c Census) figures() figures {
	if c.sandboxes.read {
		return figures{Pods: len(c.sandboxes.ids)}
	}
	return figures{c.unfinished, len(c.nodes)}
}

// censusWords name a census for people.
type censusWords struct {
	counted string // what the first of its figures counts
	subject string // what it is of
	source  string // who was asked
	empty   string // the limit of a plan whose census has none of them
}

// words returns what to call the census.
func (c Census) words() censusWords {
	if c.sandboxes.read {
		return censusWords{"sandboxes", "the container runtime", "the container runtime", noSandboxes}
	}
	return censusWords{"unfinished pods", "the cluster", "the API server", noPods}
}

// isEmpty reports whether the census has none of what every decision rests on.
func (c Census) isEmpty() bool {
	if c.sandboxes.read {
		return len(c.sandboxes.ids) == 0
	}
	return c.Size() == 0
}

// found says how much the census has, for people.
func (c Census) found() string {
	if c.sandboxes.read {
		return fmt.Sprintf("%d sandboxes and %d pods", len(c.sandboxes.ids), c.Size())
	}
	return fmt.Sprintf("%d pods", c.Size())
}

// pod returns the named pod, and whether it exists. A second look at the pod counts
// more than the list.
func (c Census) pod(ref PodRef) (Pod, Presence) {
	if c.began.IsZero() {
		return Pod{}, Unknown
	}
	if l, ok := c.fresh[ref]; ok {
		return l.pod, l.presence
	}
	if p, ok := c.listed.named(ref); ok {
		return p, Present
	}
	return Pod{}, Absent
}

// showing yields the pods that show the address.
func (c Census) showing(ip netip.Addr) iter.Seq[Pod] {
	return func(yield func(Pod) bool) {
		for ref := range c.listed.showing(ip) {
			if c.fresh[ref].presence != Unknown {
				continue
			}
			if pod, _ := c.listed.named(ref); !yield(pod) {
				return
			}
		}
		for _, l := range c.fresh {
			if l.presence == Present && l.pod.shows(ip) && !yield(l.pod) {
				return
			}
		}
	}
}

// showsIt returns the pod of that name, and whether it is among those that show the address.
func (c Census) showsIt(ref PodRef, ip netip.Addr) (Pod, bool) {
	pod, exists := c.listed.named(ref)
	if l := c.fresh[ref]; l.presence != Unknown {
		pod, exists = l.pod, l.presence == Present
	}
	return pod, exists && pod.shows(ip)
}

// hiding returns how many pods may have an address that they do not show. A pod that is
// starting on a ready node is not among them: it shows its address as soon as it has one.
func (c Census) hiding() int {
	hiding := c.hidden
	for node, pods := range c.starting {
		if !c.nodes[node].Ready {
			hiding += pods
		}
	}
	return hiding
}

// wants returns the StatefulSet that the name of a pod belongs to. It reports whether
// the StatefulSet wants a pod of that ordinal, so that the pod comes back.
func (c Census) wants(ref PodRef) (StatefulSet, bool) {
	dash := strings.LastIndexByte(ref.Name, '-')
	if dash < 0 {
		return StatefulSet{}, false
	}
	set, ok := c.sets[PodRef{ref.Namespace, ref.Name[:dash]}]
	text := ref.Name[dash+1:]
	ordinal, err := strconv.Atoi(text)
	if !ok || err != nil || strconv.Itoa(ordinal) != text {
		return StatefulSet{}, false
	}
	return set, ordinal >= set.Start && ordinal < set.Start+set.Replicas
}

// unreachable reports whether the node exists and is not ready, so that its
// sandboxes may still be running.
func (c Census) unreachable(node string) bool {
	n, ok := c.nodes[node]
	return ok && !n.Ready && !n.OutOfService
}

// fenced reports whether an administrator states that nothing runs on the node any more.
func (c Census) fenced(node string) bool { return c.nodes[node].OutOfService }

// off reports whether nothing that the store can tell runs on the node any more: it is fenced,
// or does not exist.
func (c Census) off(node string) bool {
	_, exists := c.nodes[node]
	return c.fenced(node) || !exists && node != "" && c.nodes != nil
}

// readyAgain returns the node if it is ready. For a node that is not known, it returns the
// node that came back last, since the sandbox may be there.
func (c Census) readyAgain(node string) Node {
	if node == "" {
		return c.back
	}
	if n := c.nodes[node]; n.Ready {
		return n
	}
	return Node{}
}

// The limits of a plan whose census is empty: it has no pods, or on a node no sandboxes.
const (
	noPods      = "the cluster has no pods"
	noSandboxes = "the container runtime has no sandboxes"
)

// emptied returns an error if a later list has nothing, and this census something. The limit
// for an empty census holds at each second look: a container runtime that begins anew may list
// nothing for a moment. The error wraps ErrAgain.
func (c Census) emptied(pods, sandboxes int) error {
	switch {
	case sandboxes == 0 && len(c.sandboxes.ids) > 0:
		return fmt.Errorf("%w: now %s, and it had %d", ErrAgain, noSandboxes, len(c.sandboxes.ids))
	case pods == 0 && c.Size() > 0:
		return fmt.Errorf("%w: now %s, and it had %d", ErrAgain, noPods, c.Size())
	}
	return nil
}
