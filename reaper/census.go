package reaper

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Pod has the fields of a pod object that rules look at.
type Pod struct {
	Ref  PodRef
	UID  string
	Node string // empty until it is scheduled

	// Addresses are the addresses that the pod shows: in its status, in Calico's
	// annotations, and in the Multus network-status of any interface. The first
	// InStatus of them are from the status. No address is there twice.
	Addresses []netip.Addr
	InStatus  int

	// Interfaces are the interfaces that the Multus network-status shows. No name is
	// there twice.
	Interfaces []Interface

	// Sandbox is the ID of the sandbox that the pod shows; empty if it shows none.
	Sandbox string

	// TerminationGrace is how long the kubelet lets the containers run after the
	// deletion of the pod: the longest that the pod names.
	TerminationGrace time.Duration

	// Finished is set for phase Succeeded or Failed.
	Finished bool

	// AddressUnknown is set for a pod that is not finished and should show an
	// address but does not, or whose network-status cannot be decoded; and for a pod
	// with TooMuch.
	AddressUnknown bool

	// TooMuch is set for a pod that shows more addresses than are read.
	TooMuch bool

	// Starting is set for a pod whose address is unknown because its status has none, and
	// whose annotations can be read: its sandbox is not set up yet, or the kubelet has not
	// written the status yet. It may show an address that Calico's plugin just gave it. It
	// has no network-status, or one beside an address of Calico.
	Starting bool
}

// An Interface of a pod has the addresses that a network-status shows for it.
type Interface struct {
	Name      string
	Addresses []netip.Addr
}

// shows reports whether the pod shows the address.
func (p Pod) shows(ip netip.Addr) bool { return slices.Contains(p.Addresses, ip) }

// status returns the addresses of the pod's status. The kubelet writes the status. The
// owner of a pod may write any annotation on it, so the other addresses are claims.
func (p Pod) status() []netip.Addr { return p.Addresses[:p.InStatus] }

// proves reports whether the status of the pod has the address.
func (p Pod) proves(ip netip.Addr) bool { return slices.Contains(p.status(), ip) }

// veiled reports whether nothing but its annotations makes the address of the pod unknown.
func (p Pod) veiled() bool { return p.AddressUnknown && p.InStatus > 0 }

// A StatefulSet has the fields of a StatefulSet object that rules look at.
type StatefulSet struct {
	Namespace string
	Name      string
	Start     int // first ordinal
	Replicas  int
}

// A Node has the fields of a node object that rules look at.
type Node struct {
	Name  string
	Ready bool

	// Since is when Ready last changed; zero if the node does not say.
	Since time.Time

	// Lost is set if Ready is Unknown: the node controller lost contact to the node,
	// and Since is by its clock. Otherwise Since is by the clock of the node.
	Lost bool

	// Created is when the node joined; zero if the node does not say.
	Created time.Time

	// OutOfService is set by the taint node.kubernetes.io/out-of-service: an
	// administrator states that nothing runs on the node any more.
	OutOfService bool
}

// A VirtualMachine has the fields of a VirtualMachineInstance of KubeVirt that rules
// look at.
type VirtualMachine struct {
	Namespace string
	Name      string

	// Addresses are those that the guest reports. A guest keeps its address in a live
	// migration, although the new pod shows another one.
	Addresses []netip.Addr

	// TooMuch is set if the guest reports more addresses than are read.
	TooMuch bool
}

// Presence says whether a pod exists.
type Presence int

// The presences. The zero value means that it is not known.
const (
	Unknown Presence = iota
	Present
	Absent
)

// A Cluster reads pods, virtual machines, StatefulSets and nodes. Every answer is from
// the API server's store, never from a cache. If a second request would fail in the
// same way, the error wraps ErrRefused.
type Cluster interface {
	// Pods lists every pod of the cluster. It is complete or an error.
	Pods(ctx context.Context) ([]Pod, error)

	// VirtualMachines lists every VirtualMachineInstance; none if the cluster does not
	// have that resource. It is complete or an error.
	VirtualMachines(ctx context.Context) ([]VirtualMachine, error)

	// StatefulSets lists every StatefulSet. It is complete or an error.
	StatefulSets(ctx context.Context) ([]StatefulSet, error)

	// Nodes lists every node. It is complete or an error.
	Nodes(ctx context.Context) ([]Node, error)

	// Pod reads one pod. Absent means that the API server itself answered that
	// there is no such pod. After any other failure the pod is Unknown, and there
	// is an error.
	Pod(ctx context.Context, ref PodRef) (Pod, Presence, error)
}

// A Census is a complete list of pods, StatefulSets and nodes, read after the
// allocations were listed. The zero Census has no lists: by it, every allocation is
// kept. A Census is safe for concurrent use.
type Census struct {
	population
	sets  map[PodRef]StatefulSet
	nodes map[string]Node // nil if nodes were not read
	away  []Node          // the unreachable ones, by name
	back  Node            // that became ready last, long after its creation

	machines map[netip.Addr]VirtualMachine // by each address that the guest reports
	guests   excess                        // the virtual machines that report too much

	fresh map[PodRef]look // overrides the population
}

// A population is an index of a list of pods.
type population struct {
	began   time.Time // when the reading of the list began
	version uint64    // of the list; 0 if it is not known. See Follower
	listed  podIndex
	changed *changes // overrides the list; nil if the pods are not followed

	unfinished int // the pods that are not finished

	// The pods whose addresses are unknown. Those that are starting are counted by
	// node, and are not hidden. The veiled ones are hidden too.
	hidden   int
	starting map[string]int
	veiled   []PodRef // of the list
	behind   int      // how many are veiled, with the changes

	// The pods that show too much: those that are not finished, and those that are.
	crowded, crowdedEnded excess
}

// NewCensus indexes complete lists whose reading began at the given time. It keeps the
// pods, which must not change any more. A node that
// is not among the nodes does not exist; nil means that nodes were not read.
func NewCensus(began time.Time, pods []Pod, sets []StatefulSet, nodes ...Node) Census {
	c := Census{population: newPopulation(began, pods), sets: make(map[PodRef]StatefulSet, len(sets))}
	for _, s := range sets {
		c.sets[PodRef{s.Namespace, s.Name}] = s
	}
	if nodes != nil {
		c.nodes = make(map[string]Node, len(nodes))
	}
	for _, n := range nodes {
		c.nodes[n.Name] = n
	}
	for _, n := range c.nodes {
		switch {
		case c.unreachable(n.Name):
			c.away = append(c.away, n)
		case n.Ready && n.Since.Sub(n.Created) > rejoinAge && n.Since.After(c.back.Since):
			c.back = n
		}
	}
	slices.SortFunc(c.away, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return c
}

// withMachines returns the census with a complete list of virtual machines.
func (c Census) withMachines(machines []VirtualMachine) Census {
	c.machines = make(map[netip.Addr]VirtualMachine)
	for _, m := range machines {
		if m.TooMuch {
			c.guests.add(m.Namespace, "virtual machine "+m.Namespace+"/"+m.Name)
		}
		for _, ip := range m.Addresses {
			c.machines[asShown(ip)] = m
		}
	}
	return c
}

// newPopulation indexes a complete list of pods.
func newPopulation(began time.Time, pods []Pod) population {
	p := population{
		began:    began,
		listed:   newPodIndex(pods),
		starting: make(map[string]int),
	}
	for _, pod := range pods {
		p.addCrowded(pod)
		if pod.veiled() && !pod.Finished {
			p.veiled = append(p.veiled, pod.Ref)
		}
		p.count(pod, 1)
	}
	return p
}

// addCrowded adds the pod to those that show too much, if it does.
func (p *population) addCrowded(pod Pod) {
	switch {
	case pod.TooMuch && pod.Finished:
		p.crowdedEnded.add(pod.Ref.Namespace, "pod "+pod.Ref.String())
	case pod.TooMuch:
		p.crowded.add(pod.Ref.Namespace, "pod "+pod.Ref.String())
	}
}

// count adds a pod to the numbers of pods, or subtracts it: by is 1 or -1.
func (p *population) count(pod Pod, by int) {
	if !pod.Finished {
		p.unfinished += by
	}
	if pod.veiled() && !pod.Finished {
		p.behind += by
	}
	switch {
	case pod.AddressUnknown && pod.Starting:
		if p.starting[pod.Node] += by; p.starting[pod.Node] == 0 {
			delete(p.starting, pod.Node)
		}
	case pod.AddressUnknown && !pod.Finished:
		p.hidden += by
	}
}

// A Scope says which lists a census has beside those of the pods and the virtual
// machines.
type Scope struct {
	StatefulSets bool
	Nodes        bool
}

// TakeCensus reads the pods, the virtual machines and the lists of the scope. If one list
// fails, there is no census.
func TakeCensus(ctx context.Context, cluster Cluster, scope Scope) (Census, error) {
	began := time.Now()
	pods, version, err := podsAt(ctx, cluster)
	if err != nil {
		return Census{}, fmt.Errorf("list pods: %w", err)
	}
	machines, err := cluster.VirtualMachines(ctx)
	if err != nil {
		return Census{}, fmt.Errorf("list virtualmachineinstances: %w", err)
	}
	var sets []StatefulSet
	if scope.StatefulSets {
		if sets, err = cluster.StatefulSets(ctx); err != nil {
			return Census{}, fmt.Errorf("list statefulsets: %w", err)
		}
	}
	var nodes []Node
	if scope.Nodes {
		if nodes, err = cluster.Nodes(ctx); err != nil {
			return Census{}, fmt.Errorf("list nodes: %w", err)
		}
		if nodes == nil {
			nodes = []Node{} // read, and there are none
		}
	}
	census := NewCensus(began, pods, sets, nodes...).withMachines(machines)
	census.version = version
	return census, nil
}

// Size returns the number of pods.
func (c Census) Size() int { return len(c.listed.pods) }

// figures returns the numbers of pods that are not finished, and of nodes. Finished pods
// are removed many at a time, and no list is incomplete then.
func (c Census) figures() figures { return figures{c.unfinished, len(c.nodes)} }

// pod returns the named pod, and whether it exists. A second look at the pod counts
// more than the list.
func (c Census) pod(ref PodRef) (Pod, Presence) {
	if c.began.IsZero() {
		return Pod{}, Unknown
	}
	if l, ok := c.fresh[ref]; ok {
		return l.pod, l.presence
	}
	if p, ok := c.current(ref); ok {
		return p, Present
	}
	return Pod{}, Absent
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

// off reports whether nothing runs on the node any more: it is fenced, or does not exist.
func (c Census) off(node string) bool {
	n, exists := c.nodes[node]
	return n.OutOfService || !exists && node != "" && c.nodes != nil
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

// showing yields the pods that show the address.
func (c Census) showing(ip netip.Addr) iter.Seq[Pod] {
	return func(yield func(Pod) bool) {
		for ref := range c.refsShowing(ip) {
			if c.fresh[ref].presence != Unknown {
				continue
			}
			if pod, _ := c.current(ref); !yield(pod) {
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
	pod, exists := c.current(ref)
	if l := c.fresh[ref]; l.presence != Unknown {
		pod, exists = l.pod, l.presence == Present
	}
	return pod, exists && pod.shows(ip)
}

// A look is the result of a second look at one pod.
type look struct {
	pod      Pod
	presence Presence
	began    time.Time
	err      error // why the presence is Unknown
}

// looked returns when the pod was last read, or why it could not be read.
func (c Census) looked(ref PodRef) (time.Time, error) {
	if l, ok := c.fresh[ref]; ok {
		return l.began, l.err
	}
	return c.began, nil
}

// with returns the census with the results of a second look at some pods.
func (c Census) with(fresh map[PodRef]look) Census {
	c.fresh = fresh
	return c
}

// relisted returns the census with a new list of all pods.
func (c Census) relisted(began time.Time, pods []Pod) Census {
	c.population, c.fresh = newPopulation(began, pods), nil
	return c
}
