package census

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

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
		return Figures{Pods: len(c.sandboxes.all)}
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
		return len(c.sandboxes.all) == 0
	}
	return c.Size() == 0
}

// Found says how much the census has, for people.
func (c Census) Found() string {
	if c.sandboxes.read {
		return fmt.Sprintf("%d sandboxes and %d pods", len(c.sandboxes.all), c.Size())
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

// Away returns the nodes that are not ready, by name, whether they are unreachable or fenced.
func (c Census) Away() []Node { return c.away }

// OnNode reports whether the sandboxes of a node were read.
func (c Census) OnNode() bool { return c.sandboxes.read }

// Sandbox returns the sandbox of the node whose ID begins with the given one; the zero Sandbox if there is none.
// Of several, it is one that is ready.
func (c Census) Sandbox(id string) (found Sandbox) {
	at, _ := slices.BinarySearchFunc(c.sandboxes.all, id, func(s Sandbox, id string) int { return strings.Compare(s.ID, id) })
	for _, s := range c.sandboxes.all[at:] {
		if found.Ready || !strings.HasPrefix(s.ID, id) {
			break
		}
		found = s
	}
	return found
}

// Boot identifies the boot of the node whose sandboxes were read; empty if it is not known.
func (c Census) Boot() string { return c.sandboxes.boot }

// Unclaimed says why no sandbox of the node has attachments, if there are sandboxes and nothing keeps
// attachments; empty otherwise.
func (c Census) Unclaimed() string { return c.sandboxes.none }

// Sandboxes returns the sandboxes of the node. They must not be changed.
func (c Census) Sandboxes() []Sandbox { return c.sandboxes.all }

// Vague returns the attachments of sandboxes that could not be decoded: each may have any address. They
// must not be changed.
func (c Census) Vague() []ipam.Attachment { return c.sandboxes.vague }

// On yields the claims on an address: those of Book.On, and those of the sandboxes of the node.
func (c Census) On(ip netip.Addr) iter.Seq[Claim] {
	return func(yield func(Claim) bool) {
		for claim := range c.Book.On(ip) {
			if !yield(claim) {
				return
			}
		}
		for _, claim := range c.sandboxes.claims[ip] {
			if !yield(claim) {
				return
			}
		}
	}
}

// ShowingTooMuch returns the first name of an unfinished pod, or else of a virtual machine, of
// the namespace that shows more addresses than are read; empty if there is none. The empty
// namespace stands for all.
func (c Census) ShowingTooMuch(namespace string) string {
	return cmp.Or(c.crowded.first[namespace], c.guests.first[namespace])
}

// AllShowingTooMuch returns the names of the pods and the virtual machines that show more
// addresses than are read, including finished pods if ended is set.
func (c Census) AllShowingTooMuch(ended bool) []string {
	names := slices.Concat(c.crowded.names, c.guests.names)
	if ended {
		names = append(names, c.crowdedEnded.names...)
	}
	return names
}

// EndedShowingTooMuch returns the first name of a finished pod that shows more addresses than
// are read; empty if there is none.
func (c Census) EndedShowingTooMuch() string { return c.crowdedEnded.first[""] }

// MayBe returns the nodes that the name of another node may stand for: those that have it as one of
// their other names, and those for which one name is the other with a domain behind it. It returns none if
// a node has exactly that name: then it stands for that node.
//
// Machines may share such a name. So it is a reason to wait for these nodes, and proves nothing.
func (c Census) MayBe(name string) []string {
	if name == "" || len(name) > maxName || c.HasNode(name) {
		return nil
	}
	name = strings.ToLower(name)
	nodes := slices.Concat(c.called[name], c.called[name+"."])
	for host := range hosts(name) {
		nodes = append(nodes, c.called[host]...)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// maxName is the longest name of a DNS subdomain, and so of a node.
const maxName = 253

// called returns the names of nodes by what they are called: by each of their names, and by each
// without a domain and with a dot behind it.
func called(nodes []Node) map[string][]string {
	all := make(map[string][]string, len(nodes))
	for _, n := range nodes {
		for _, name := range append([]string{n.Name}, n.OtherNames...) {
			if len(name) > maxName {
				continue
			}
			name = strings.ToLower(name)
			all[name] = append(all[name], n.Name)
			for host := range hosts(name) {
				all[host+"."] = append(all[host+"."], n.Name)
			}
		}
	}
	return all
}

// hosts yields the name without its last label, without its last two labels, and so on.
func hosts(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		end := strings.LastIndexByte(name, '.')
		for end > 0 && yield(name[:end]) {
			end = strings.LastIndexByte(name[:end], '.')
		}
	}
}
