package judge_test

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// up reports whether the node exists and is ready.
func (m *kubeletModel) up(node string) bool { return m.nodes[node] != nil && m.nodes[node].Ready }

// blind reports whether the kubelet of the node has lost the API server, but its plugins have
// not.
func (m *kubeletModel) blind(node string) bool {
	n := m.nodes[node]
	return n != nil && n.Lost && !n.OutOfService
}

// newBox returns a new sandbox of the pod.
func (m *kubeletModel) newBox(pod *kubeletPod) *sandbox {
	m.made++
	misnamed := m.known["a clone"] && m.alias[pod.Node] != pod.Node
	return &sandbox{
		id: fmt.Sprint("s", m.made), pod: pod.Ref.Name, node: pod.Node, grace: pod.TerminationGrace,
		misnamed: misnamed, meant: misnamed && m.meant[pod.Node],
	}
}

// setUp makes a pod that shows its addresses.
func (m *kubeletModel) setUp(name, node string) {
	m.create(name, node, 30*time.Second)
	m.add(name)
	m.show(name)
}

// loseTrace has a run see a pod of a node, and none see the next one, whose node is cut off. Later runs have
// only what they remember of the first.
func (m *kubeletModel) loseTrace(name, node string, run func()) {
	m.setUp(name, node)
	run()
	m.graceful(name)
	m.setUp(name, node)
	m.ready(node, false)
	m.forceDelete(name)
	for range 2 {
		run()
		m.pass(15 * time.Minute)
	}
	run()
	m.ready(node, true)
}

// clone gives a node the file with the name of the n-th node: Calico's plugin there books under that name
// from now on.
func (m *kubeletModel) clone(node string, n int) {
	if of := fmt.Sprint("n", n); m.alias[node] != of {
		m.alias[node], m.meant[node] = of, false
		m.note("%s has the name of %s", node, of)
	}
}

// learn has a complete run see which node Calico means by the name under which it has the pod.
func (m *kubeletModel) learn(pod *kubeletPod) {
	if !pod.box.misnamed || pod.InStatus == 0 || pod.shown != pod.box {
		return
	}
	name := ""
	for _, e := range m.calico() {
		if e.box == pod.box {
			name = e.a.Owner.Node
		}
	}
	m.meant[pod.Node] = m.meant[pod.Node] || m.alias[pod.Node] == name
	for _, e := range m.calico() {
		if e.box.node == pod.Node && e.a.Owner.Node == name {
			e.box.meant = true
		}
	}
}

// putCalico is the ADD of Calico's plugin for a sandbox, with an address of a second network.
// It returns the address that each store gives to the sandbox.
func (m *kubeletModel) putCalico(pod *kubeletPod, box *sandbox) func(store int) netip.Addr {
	ip := func(store int) netip.Addr {
		return netip.AddrFrom4([4]byte{10, byte(store), byte(m.made / 250), byte(m.made % 250)})
	}
	owner := ipam.Owner{Pod: pod.Ref, Sandbox: box.id}
	owner.Node = m.alias[pod.Node]
	m.put(inCalico, ipam.Allocation{Key: fmt.Sprint(m.made), IP: ip(inCalico), Owner: owner, Created: m.now.Add(m.clock[pod.Node] - time.Second + time.Duration(m.made)), Group: "handle " + box.id, Adoption: ipam.SandboxOwned}, box)
	m.told[pod.Node+"/"+pod.Ref.Name] = ipam.Endpoint{Name: "endpoint", Sandbox: box.id, Addresses: []netip.Addr{ip(inCalico)}}
	if m.known["endpoints in pods"] {
		m.told[pod.Node+"/"+pod.Ref.Name] = ipam.Endpoint{InPod: true}
		pod.wrote = ipam.Endpoint{Sandbox: box.id, Addresses: []netip.Addr{ip(inCalico)}}
		pod.Sandbox, pod.Addresses = box.id, append(slices.Clone(pod.Addresses[:pod.InStatus]), ip(inCalico))
	}
	second := m.stores[inCalico][fmt.Sprint(m.made)].a
	second.Key, second.IP, second.Group = "second "+second.Key, ip(secondNetwork), "second "+second.Group
	m.put(inCalico, second, box)
	return ip
}

// hang deletes the pod; its sandbox cannot be stopped, so the pod stays.
func (m *kubeletModel) hang(name string) {
	pod := m.pods[name]
	if pod == nil || pod.box == nil || pod.box.stuck || !m.up(pod.Node) {
		return
	}
	pod.box.stuck, pod.Deadline = true, m.now.Add(pod.TerminationGrace)
	m.note("%s hangs in Terminating", name)
}

// hangs reports whether a run can see that the pod hangs.
func (m *kubeletModel) hangs(pod *kubeletPod) bool {
	if !pod.box.stuck || !m.up(pod.Node) {
		return false
	}
	began := m.nodes[pod.Node].Since.Add(pod.TerminationGrace)
	if began.Before(pod.Deadline) {
		began = pod.Deadline
	}
	return m.now.Sub(began) > time.Minute
}

// reboot restarts the machine of the node. Its kubelet ends the pods that were deleted, and
// makes new sandboxes for the others; no DEL reaches a store.
func (m *kubeletModel) reboot(node string) {
	if !m.up(node) {
		return
	}
	m.made++
	m.nodes[node].Boot = fmt.Sprint("b", m.made)
	m.note("%s is started anew", node)
	for _, b := range slices.Clone(m.boxes) {
		if b.node == node {
			m.end(b)
		}
	}
	for i := range 2 {
		name := fmt.Sprint("p-", i)
		pod := m.pods[name]
		switch {
		case pod == nil || pod.Node != node:
		case !pod.Deadline.IsZero():
			delete(m.pods, name)
		case pod.box != nil:
			pod.box = nil
			m.add(name)
		}
	}
}

// leave deletes the Node object. If its kubelet hears of it, it ends the pods in their time;
// otherwise, an administrator has made sure that nothing runs.
func (m *kubeletModel) leave(node string) {
	up := m.up(node)
	if m.nodes[node] == nil {
		return
	}
	m.note("the object of %s is deleted", node)
	for i := range 2 {
		if name := fmt.Sprint("p-", i); m.pods[name] != nil && m.pods[name].Node == node {
			m.forceDelete(name)
		}
	}
	delete(m.nodes, node)
	m.meant[node] = false
	m.boxes = slices.DeleteFunc(m.boxes, func(b *sandbox) bool { return b.node == node && (!up || b.stuck) })
}

// join makes the Node object again.
func (m *kubeletModel) join(node string) {
	if m.nodes[node] != nil {
		return
	}
	m.made++
	m.nodes[node] = &census.Node{Name: node, Ready: true, Created: m.now, Since: m.now, Boot: fmt.Sprint("b", m.made)}
	m.note("%s joins", node)
}

// lose has the API server lose the kubelet, whose certificate has expired.
func (m *kubeletModel) lose(node string) {
	if m.up(node) {
		m.ready(node, false)
		m.nodes[node].Lost = true
	}
}

// loop makes a sandbox for which a chained plugin fails after Calico's ADD. Calico's DEL fails,
// too.
func (m *kubeletModel) loop(name string) {
	if pod := m.pods[name]; pod != nil && pod.box == nil && !pod.HostNetwork && m.up(pod.Node) {
		box := m.newBox(pod)
		m.putCalico(pod, box)
		m.note("add %s fails: %s", name, box.id)
	}
}

// isReplaced reports whether a dead allocation of Calico should be gone although its pod
// exists.
func (m *kubeletModel) isReplaced(pod *kubeletPod, e *storedEntry) bool {
	if m.known["names differ"] || m.known["domains differ"] || m.known["a clone"] || !m.up(pod.Node) {
		return false
	}
	if pod.box != nil {
		return pod.shown == pod.box
	}
	if pod.InStatus > 0 {
		return false
	}
	again := pod.Created.Sub(e.a.Created) > inFlight && pod.Started.Sub(e.a.Created) > inFlight
	told := m.told[pod.Node+"/"+pod.Ref.Name]
	if told.InPod {
		told = ipam.Endpoint{Name: "pod", Sandbox: pod.Sandbox, Addresses: pod.Addresses}
	}
	return again || !told.Claims(&e.a) && slices.ContainsFunc(m.calico(), func(o *storedEntry) bool {
		later := o.a.Owner.Pod == pod.Ref && o.a.Created.After(e.a.Created) && told.Has(&o.a) && !o.a.Created.After(m.now)
		return later && o.a.Owner.Node == pod.Node && e.a.Owner.Node == pod.Node
	})
}

// calico returns what Calico has stored.
func (m *kubeletModel) calico() []*storedEntry {
	var all []*storedEntry
	for _, e := range m.stores[inCalico] {
		all = append(all, e)
	}
	return all
}

// A modelStore lists the entries of one store.
type modelStore struct {
	fixedStore
	m      *kubeletModel
	store  int
	broken bool
}

func (s modelStore) Name() string { return storeNames[s.store] }

func (s modelStore) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		if s.broken {
			yield(ipam.Pool{}, errForbidden)
			return
		}
		pool := ipam.Pool{Name: "pool", Network: "-"}
		for _, e := range s.m.stores[s.store] {
			pool.Allocations = append(pool.Allocations, e.a)
		}
		slices.SortFunc(pool.Allocations, func(a, b ipam.Allocation) int { return strings.Compare(a.Key, b.Key) })
		yield(pool, nil)
	}
}
