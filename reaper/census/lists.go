package census

import (
	"iter"
	"maps"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Began returns when the reading of the pods began; zero for the zero Census.
func (c Census) Began() time.Time { return c.began }

// Pods returns the pods of the list. They must not be changed.
func (c Census) Pods() []Pod { return c.pods }

// InSandbox returns the name of a pod that shows the sandbox, and whether there is one.
func (c Census) InSandbox(id string) (ipam.PodRef, bool) {
	i, found := c.bySandbox[id]
	if !found {
		return ipam.PodRef{}, false
	}
	return c.pods[i].Ref, true
}

// Veiled returns the pods whose annotations alone leave addresses unknown.
func (c Census) Veiled() []ipam.PodRef { return c.veiled }

// Starting reports whether some pod is not set up yet.
func (c Census) Starting() bool { return len(c.starting) > 0 }

// ReadsNodes reports whether the nodes were read.
func (c Census) ReadsNodes() bool { return c.nodes != nil }

// HasNodes reports whether there are any nodes.
func (c Census) HasNodes() bool { return len(c.nodes) > 0 }

// Node returns the node of that name; the zero Node if there is none.
func (c Census) Node(name string) Node { return c.nodes[name] }

// HasNode reports whether there is a node of that name.
func (c Census) HasNode(name string) bool {
	_, exists := c.nodes[name]
	return exists
}

// Nodes yields the names of the nodes, in any order.
func (c Census) Nodes() iter.Seq[string] { return maps.Keys(c.nodes) }

// Away returns the nodes that are unreachable, by name.
func (c Census) Away() []Node { return c.away }

// HasStatefulSets reports whether any StatefulSet was read.
func (c Census) HasStatefulSets() bool { return len(c.sets) > 0 }

// OnNode reports whether the sandboxes of a node were read.
func (c Census) OnNode() bool { return c.sandboxes.read }

// HasSandbox reports whether the node has a sandbox whose ID begins with the given one.
func (c Census) HasSandbox(id string) bool { return c.sandboxes.has(id) }

// ShowingTooMuch returns the first name of an unfinished pod, or else of a virtual machine, of
// the namespace that shows more addresses than are read; empty if there is none. The empty
// namespace stands for all.
func (c Census) ShowingTooMuch(namespace string) string {
	if name := c.crowded.first[namespace]; name != "" {
		return name
	}
	return c.guests.first[namespace]
}

// AllShowingTooMuch returns the names of the pods and the virtual machines that show more
// addresses than are read, including finished pods if ended is set.
func (c Census) AllShowingTooMuch(ended bool) []string {
	var names []string
	names = append(append(names, c.crowded.names...), c.guests.names...)
	if ended {
		names = append(names, c.crowdedEnded.names...)
	}
	return names
}

// EndedShowingTooMuch returns the first name of a finished pod that shows more addresses than
// are read; empty if there is none.
func (c Census) EndedShowingTooMuch() string { return c.crowdedEnded.first[""] }
