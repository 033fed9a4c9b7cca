package census

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Census is a complete list of pods, StatefulSets and nodes, and on a node also of
// sandboxes. It is read after the allocations were listed. The zero Census has no lists: with
// it, every allocation is kept. A Census is safe for concurrent use.
type Census struct {
	Book
	population
	sets   map[ipam.PodRef]StatefulSet
	nodes  map[string]Node     // nil if nodes were not read
	called map[string][]string // see MayBe
	away   []Node              // those that are not ready, by name
	back   Node                // the one that became ready last, long after its creation

	sandboxes sandboxList // of the node, if the run is on one

	endpoints map[ipam.PodRef]ipam.Endpoint // by their pods, as far as they were asked for

	silent map[ipam.PodRef]VirtualMachine // those that do not report all addresses, by the beginning of their pods' names
	guests excess                         // the virtual machines that report too much

	unread unread
}

// rejoinAge is how long after its creation a node that becomes ready counts as back, not new.
const rejoinAge = 10 * time.Minute

// New indexes complete lists whose reading began at the given time. It keeps the pods, which
// must not change any more. A node that is not among the nodes does not exist; nil means that
// nodes were not read.
func New(began time.Time, pods []Pod, sets []StatefulSet, nodes ...Node) Census {
	c := Census{population: newPopulation(began, pods), sets: make(map[ipam.PodRef]StatefulSet, len(sets)), called: called(nodes)}
	c.Book = newBook(pods, make(map[netip.Addr][]Claim))
	for _, s := range sets {
		c.sets[ipam.PodRef{Namespace: s.Namespace, Name: s.Name}] = s
	}
	if nodes != nil {
		c.nodes = make(map[string]Node, len(nodes))
	}
	for _, n := range nodes {
		c.nodes[n.Name] = n
		for ip, annotation := range n.Tunnels {
			c.add(Claim{IP: ip, By: Claimant{KindNode, ipam.PodRef{Name: n.Name}}, Source: annotation, Proves: true})
		}
	}
	for _, n := range c.nodes {
		switch {
		case !n.Ready:
			c.away = append(c.away, n)
		case n.Since.Sub(n.Created) > rejoinAge && n.Since.After(c.back.Since):
			c.back = n
		}
	}
	slices.SortFunc(c.away, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return c
}

// addMachines adds a complete list of virtual machines.
func (c *Census) addMachines(machines []VirtualMachine) {
	c.silent = make(map[ipam.PodRef]VirtualMachine)
	for _, m := range machines {
		by := Claimant{KindMachine, ipam.PodRef{Namespace: m.Namespace, Name: m.Name}}
		ref := launchers(by.Ref)
		if old, known := c.silent[ref]; !m.Reported && (!known || m.Created.Before(old.Created)) {
			c.silent[ref] = m
		}
		if m.TooMuch {
			c.guests.add(m.Namespace, by.String())
		}
		for _, ip := range m.Addresses {
			c.add(Claim{IP: ipam.Shown(ip), By: by, Source: GuestReport})
		}
	}
}

// randomSuffix is how many characters the API server adds to a name that it generates, and
// maxGenerated how many it keeps before them (k8s.io/apiserver/pkg/storage/names).
const (
	randomSuffix = 5
	maxGenerated = 63 - randomSuffix
)

// launchers returns the beginning of the names of the pods of a virtual machine. KubeVirt lets the
// API server generate the rest.
func launchers(machine ipam.PodRef) ipam.PodRef {
	name := "virt-launcher-" + machine.Name + "-"
	return ipam.PodRef{Namespace: machine.Namespace, Name: name[:min(len(name), maxGenerated)]}
}

// generatedFrom returns the beginning of the name of a pod, if the API server generated the rest.
func generatedFrom(pod ipam.PodRef) ipam.PodRef {
	pod.Name = pod.Name[:max(0, len(pod.Name)-randomSuffix)]
	return pod
}

// SameMachine reports whether two pods may be those of one virtual machine, which has two while it
// migrates.
func SameMachine(a, b ipam.PodRef) bool {
	return strings.HasPrefix(a.Name, "virt-launcher-") && generatedFrom(a) == generatedFrom(b)
}

// Launched returns the virtual machine that may belong to a pod of that name and that does not
// report all addresses of its guest.
func (c Census) Launched(pod ipam.PodRef) (VirtualMachine, bool) {
	m, ok := c.silent[generatedFrom(pod)]
	return m, ok
}

// A Scope says which lists a census has besides those of the pods and the virtual
// machines.
type Scope struct {
	StatefulSets bool
	Nodes        bool
}

// Take reads the pods, and then the virtual machines, the nodes and, on a node, the sandboxes. The
// StatefulSets are read at the same time as the pods. If one list fails, there is no census, unless
// files lack a list other than that of the pods: see Census.Unread.
//
// The order matters. Whether the runtime is that of the API server is seen by the pods that were
// listed before. A guest that takes over the address of a pod that ends is in one of the lists, and
// so is a node that is lost before its pod is deleted.
func Take(ctx context.Context, cluster Cluster, scope Scope) (Census, error) {
	began := time.Now()
	var pods []Pod
	var sets []StatefulSet
	var lacks unread
	lists, listing := errgroup.WithContext(ctx)
	lists.Go(func() (err error) {
		pods, err = cluster.Pods(listing)
		return listed("pods", err)
	})
	if scope.StatefulSets {
		lists.Go(func() (err error) {
			sets, err = cluster.StatefulSets(listing)
			return orUnread(&lacks.sets, "statefulsets", err)
		})
	}
	if err := lists.Wait(); err != nil {
		return Census{}, err
	}
	var sandboxes sandboxList
	var machines []VirtualMachine
	var nodes []Node
	lists, listing = errgroup.WithContext(ctx)
	lists.Go(func() (err error) {
		sandboxes, err = sandboxesOf(listing, cluster)
		return err
	})
	lists.Go(func() (err error) {
		machines, err = cluster.VirtualMachines(listing)
		return orUnread(&lacks.machines, "virtualmachineinstances", err)
	})
	if scope.Nodes {
		lists.Go(func() (err error) {
			if nodes, err = cluster.Nodes(listing); nodes == nil && err == nil {
				nodes = []Node{} // read, and there are none
			}
			return orUnread(&lacks.nodes, "nodes", err)
		})
	}
	if err := lists.Wait(); err != nil {
		return Census{}, err
	}
	census := New(began, pods, sets, nodes...)
	census.addMachines(machines)
	census.sandboxes, census.unread = sandboxes, lacks
	return census, nil
}

// listed returns the error of a list with the name of its resource.
func listed(resource string, err error) error {
	if err != nil {
		return fmt.Errorf("list %s: %w", resource, err)
	}
	return nil
}

// A Reading is what a second look read of one pod.
type Reading struct {
	Pod      Pod
	Presence Presence
	Began    time.Time
	Err      error // why the presence is Unknown

	Endpoint ipam.Endpoint // what a store has for it, if the decision rests on that
}

// ReadAt returns when the pod was last read, or why it could not be read.
func (c Census) ReadAt(ref ipam.PodRef) (time.Time, error) {
	if l, ok := c.fresh[ref]; ok {
		return l.Began, l.Err
	}
	return c.began, nil
}

// With returns the census with the results of a second look at some pods, without the endpoints of the
// first one.
func (c Census) With(fresh map[ipam.PodRef]Reading) Census {
	c.fresh, c.endpoints = fresh, nil
	return c
}

// WithEndpoints returns the census with what stores have beside their allocations for some pods.
func (c Census) WithEndpoints(endpoints map[ipam.PodRef]ipam.Endpoint) Census {
	c.endpoints = endpoints
	return c
}

// Endpoint returns what a store has for the pod on its node; the zero Endpoint if there is none, or if
// it was not asked for.
func (c Census) Endpoint(ref ipam.PodRef) ipam.Endpoint {
	if l, ok := c.fresh[ref]; ok {
		return l.Endpoint
	}
	return c.endpoints[ref]
}

// Again returns the census with a new list of all pods, and on a node of all sandboxes. It does
// not believe a list that has become empty: the limit for an empty census applies at each second
// look, and a container runtime that restarts may list nothing for a moment. That error wraps
// ErrAgain.
func (c Census) Again(ctx context.Context, cluster Cluster) (Census, error) {
	began := time.Now()
	pods, err := cluster.Pods(ctx)
	if err != nil {
		return Census{}, fmt.Errorf("list pods: %w", err)
	}
	sandboxes, err := sandboxesOf(ctx, cluster)
	switch {
	case err != nil:
		return Census{}, err
	case len(sandboxes.all) == 0 && len(c.sandboxes.all) > 0:
		return Census{}, fmt.Errorf("%w: now %s, and it had %d", ipam.ErrAgain, NoSandboxes, len(c.sandboxes.all))
	case len(pods) == 0 && c.Size() > 0:
		return Census{}, fmt.Errorf("%w: now %s, and it had %d", ipam.ErrAgain, NoPods, c.Size())
	}
	c.Book, c.population, c.sandboxes = newBook(pods, c.others), newPopulation(began, pods), sandboxes
	return c, nil
}

// A population is an index of a list of pods. The zero population has none. It is safe for
// concurrent use.
type population struct {
	began time.Time // when the reading of the list began

	// The positions of the pods in the list, by each of these; only the first of a sandbox.
	byName    map[ipam.PodRef]int32
	bySandbox map[string]int32

	unfinished int // the pods that are not finished

	// The pods that may have addresses that they do not show. Those that are starting are
	// counted by node, and not under hidden. The veiled ones are also counted under hidden.
	hidden   int
	starting map[string]int
	veiled   []ipam.PodRef

	// The pods that show too much: those that are not finished, and those that are.
	crowded, crowdedEnded excess
}

// newPopulation indexes a complete list of pods.
func newPopulation(began time.Time, pods []Pod) population {
	p := population{
		began: began, byName: make(map[ipam.PodRef]int32, len(pods)), bySandbox: make(map[string]int32), starting: make(map[string]int),
	}
	for n, pod := range pods {
		i := int32(n)
		p.byName[pod.Ref] = i
		if _, known := p.bySandbox[pod.Sandbox]; pod.Sandbox != "" && !known {
			p.bySandbox[pod.Sandbox] = i
		}
		p.count(pod)
	}
	return p
}

// count adds a pod to the numbers and names of the population.
func (p *population) count(pod Pod) {
	switch {
	case pod.TooMuch && pod.Finished:
		p.crowdedEnded.add(pod.Ref.Namespace, "pod "+pod.Ref.String())
	case pod.TooMuch:
		p.crowded.add(pod.Ref.Namespace, "pod "+pod.Ref.String())
	}
	if !pod.Finished {
		p.unfinished++
	}
	if pod.veiled() && !pod.Finished {
		p.veiled = append(p.veiled, pod.Ref)
	}
	switch {
	case pod.AddressUnknown && pod.Starting:
		p.starting[pod.Node]++
	case pod.hides() && !pod.Finished:
		p.hidden++
	}
}

// An excess has the pods or the virtual machines that show more addresses than are read.
// An address that was not read may be that of any allocation that names a pod of the same
// namespace, or no pod. So a tenant cannot keep what names a pod of another namespace.
type excess struct {
	names []string          // of all
	first map[string]string // the first name of each namespace, and of all under ""
}

// add adds the name of a pod or a virtual machine.
func (e *excess) add(namespace, name string) {
	if e.first == nil {
		e.first = make(map[string]string)
	}
	e.names = append(e.names, name)
	for _, in := range []string{namespace, ""} {
		if first := e.first[in]; first == "" || name < first {
			e.first[in] = name
		}
	}
}
