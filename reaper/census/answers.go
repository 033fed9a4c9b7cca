package census

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Size returns the number of pods.
func (c Census) Size() int { return len(c.pods) }

// Figures are the numbers of a census: of pods that are not finished, and of nodes. They
// are 0 for a list that was not read.
type Figures struct{ Pods, Nodes int }

// Figures returns the numbers of pods that are not finished, and of nodes. Finished pods
// are removed many at a time, which does not make a list incomplete. On a node, the
// sandboxes count instead of the pods.
func (c Census) Figures() Figures {
	if c.sandboxes.read {
		return Figures{Pods: len(c.sandboxes.ids)}
	}
	return Figures{c.unfinished, len(c.nodes)}
}

// Words name a census for people.
type Words struct {
	Counted string // what the first of its figures counts
	Subject string // what it is of
	Source  string // who was asked
	Right   string // what the source should be
	Empty   string // the limit of a plan whose census has none of them
}

// Words returns what to call the census.
func (c Census) Words() Words {
	if c.sandboxes.read {
		return Words{"sandboxes", "the container runtime", "the container runtime", "that of the kubelet", NoSandboxes}
	}
	return Words{"unfinished pods", "the cluster", "the API server", "the right one", NoPods}
}

// IsEmpty reports whether the census has none of what every decision rests on.
func (c Census) IsEmpty() bool {
	if c.sandboxes.read {
		return len(c.sandboxes.ids) == 0
	}
	return c.Size() == 0
}

// Found says how much the census has, for people.
func (c Census) Found() string {
	if c.sandboxes.read {
		return fmt.Sprintf("%d sandboxes and %d pods", len(c.sandboxes.ids), c.Size())
	}
	return fmt.Sprintf("%d pods", c.Size())
}

// Pod returns the named pod, and whether it exists. A second look at the pod overrides
// the list.
func (c Census) Pod(ref ipam.PodRef) (Pod, Presence) {
	if c.began.IsZero() {
		return Pod{}, Unknown
	}
	if l, ok := c.fresh[ref]; ok {
		return l.Pod, l.Presence
	}
	if i, ok := c.byName[ref]; ok {
		return c.pods[i], Present
	}
	return Pod{}, Absent
}

// Hiding returns how many pods may have an address that they do not show. A pod that is
// starting on a ready node is not among them: it shows its address as soon as it has one.
func (c Census) Hiding() int {
	hiding := c.hidden
	for node, pods := range c.starting {
		if !c.nodes[node].Ready {
			hiding += pods
		}
	}
	return hiding
}

// Wants returns the StatefulSet that the name of a pod belongs to. It reports whether
// the StatefulSet wants a pod of that ordinal, so that the pod comes back.
func (c Census) Wants(ref ipam.PodRef) (StatefulSet, bool) {
	dash := strings.LastIndexByte(ref.Name, '-')
	if dash < 0 {
		return StatefulSet{}, false
	}
	set, ok := c.sets[ipam.PodRef{Namespace: ref.Namespace, Name: ref.Name[:dash]}]
	text := ref.Name[dash+1:]
	ordinal, err := strconv.Atoi(text)
	if !ok || err != nil || strconv.Itoa(ordinal) != text {
		return StatefulSet{}, false
	}
	return set, ordinal >= set.Start && ordinal < set.Start+set.Replicas
}

// Unreachable reports whether the node exists, is not ready and is not fenced, so its
// sandboxes may still be running.
func (c Census) Unreachable(node string) bool {
	n, ok := c.nodes[node]
	return ok && !n.Ready && !c.Fenced(node)
}

// Fenced reports whether an administrator states that nothing runs on the node any more. A ready
// node is alive, whatever its taints say, as for the garbage collector of pods (gcTerminating in
// k8s.io/kubernetes/pkg/controller/podgc).
func (c Census) Fenced(node string) bool {
	n := c.nodes[node]
	return n.OutOfService && !n.Ready
}

// Off reports whether, as far as the census shows, nothing runs on the node any more: it is
// fenced, or does not exist.
func (c Census) Off(node string) bool {
	_, exists := c.nodes[node]
	return c.Fenced(node) || !exists && node != "" && c.nodes != nil
}

// ReadyAgain returns the node if it is ready. If its name is not known, it returns the node
// that came back last, since the sandbox may be there.
func (c Census) ReadyAgain(node string) Node {
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
	NoPods      = "the cluster has no pods"
	NoSandboxes = "the container runtime has no sandboxes"
)
