package judge_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// A kubeletModel is a cluster in which pods are deleted by force, nodes are cut off and
// come back, and kubelets take their time to end sandboxes. Every run remembers. What it plans
// is gone afterwards, and must not be of a running sandbox.
type kubeletModel struct {
	t      *testing.T
	now    time.Time
	nodes  map[string]*census.Node
	pods   map[string]*kubeletPod // in the API
	boxes  []*sandbox             // that run
	stores [3]map[string]*storedEntry
	told   map[string]ipam.Endpoint // Calico's, by node and pod; none is ever deleted
	ledger ledger.Ledger
	made   int
	log    []string
	known  map[string]bool          // findings that are left out
	clock  map[string]time.Duration // how far the clock of a node is ahead
	alias  map[string]string        // what Calico calls a node
	meant  map[string]bool          // the nodes whose alias a complete run saw since it is that
	wanted int                      // how many pods the StatefulSet p wants
}

type kubeletPod struct {
	census.Pod
	box   *sandbox
	shown *sandbox
	wrote ipam.Endpoint // what Calico wrote last into its annotations, if pods stand for their endpoints
}

type sandbox struct {
	id, pod, node string
	grace         time.Duration
	deleted       bool      // its pod is gone from the API
	stuck         bool      // it cannot be stopped, and only a reboot ends it
	hung          bool      // a complete run saw its pod hang
	ends          time.Time // when the kubelet has ended it; zero while it runs
	noted         bool      // a complete run saw its pod, and its entries
	misnamed      bool      // Calico has it under the name of another node
	meant         bool      // and a complete run saw that it means this node by that name
}

type storedEntry struct {
	a    ipam.Allocation
	box  *sandbox
	seen bool // a complete run saw the pod show it
	news bool // adopted from another sandbox, and no run saw the pod show it since
}

const (
	inCalico = iota
	inPool
	inOverlapping
)

// secondNetwork is the byte of the addresses of Calico's second network, which are in no
// status.
const secondNetwork = 9

var storeNames = [3]string{"calico", "whereabouts", "overlapping"}

func newKubeletModel(t *testing.T, known ...string) *kubeletModel {
	m := &kubeletModel{t: t, now: noon, told: map[string]ipam.Endpoint{}, nodes: map[string]*census.Node{}, pods: map[string]*kubeletPod{}, known: map[string]bool{}, clock: map[string]time.Duration{}, meant: map[string]bool{}, alias: map[string]string{"n0": "n0", "n1": "n1", "n2": "n2"}}
	for _, k := range known {
		m.known[k] = true
	}
	for i := range m.stores {
		m.stores[i] = map[string]*storedEntry{}
	}
	for i := range 3 {
		name := fmt.Sprint("n", i)
		m.nodes[name] = &census.Node{Name: name, Ready: true, Created: noon.Add(-100 * time.Hour), Since: noon.Add(-99 * time.Hour), Boot: "b"}
	}
	return m
}

func (m *kubeletModel) note(format string, args ...any) {
	m.log = append(m.log, m.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func (m *kubeletModel) create(name, node string, grace time.Duration) {
	if m.pods[name] != nil || !m.up(node) {
		return
	}
	m.made++
	m.pods[name] = &kubeletPod{Pod: census.Pod{
		Ref: ipam.PodRef{Namespace: "default", Name: name}, UID: fmt.Sprint("u", m.made), Node: node,
		AddressUnknown: true, Starting: true, TerminationGrace: grace, Created: m.now, Started: m.now.Add(m.clock[node]),
	}}
	m.note("create %s on %s, grace %v", name, node, grace)
}

// createOnHost makes a pod on the network of its node, for which no plugin is called.
func (m *kubeletModel) createOnHost(name, node string) {
	if m.pods[name] != nil || !m.up(node) {
		return
	}
	m.create(name, node, 30*time.Second)
	pod := m.pods[name]
	pod.HostNetwork, pod.AddressUnknown, pod.Starting = true, false, false
	pod.Addresses, pod.InStatus = []netip.Addr{netip.MustParseAddr("172.16.0.1")}, 1
	m.note("it is on the network of its node")
}

// add is the ADD of all plugins for a new sandbox of the pod.
func (m *kubeletModel) add(name string) {
	pod := m.pods[name]
	if pod == nil || pod.HostNetwork || pod.box != nil || !m.up(pod.Node) && !m.blind(pod.Node) {
		return
	}
	box := m.newBox(pod)
	pod.box = box
	m.boxes = append(m.boxes, box)
	ip := m.putCalico(pod, box)
	owner := ipam.Owner{Pod: pod.Ref, Sandbox: box.id, Interface: "net1"}
	for _, e := range m.stores[inPool] {
		if e.a.Owner.Pod == pod.Ref {
			e.a.Owner.Sandbox, e.a.Token, e.box, e.news = box.id, "t-"+box.id, box, true
			m.note("%s adopts %s", name, e.a.IP)
			if o := m.stores[inOverlapping][e.a.IP.String()]; o != nil {
				o.box, o.news = box, true
			}
			return
		}
	}
	pool := ipam.Allocation{Key: ip(inPool).String(), IP: ip(inPool), Owner: owner, Group: "g " + ip(inPool).String() + name}
	m.put(inPool, pool, box)
	pool.Owner.Sandbox, pool.Created = "", m.now
	if m.made%2 == 0 {
		pool.Group = ""
	}
	m.put(inOverlapping, pool, box)
	m.note("add %s: %s %s", name, box.id, pool.IP)
}

func (m *kubeletModel) put(store int, a ipam.Allocation, box *sandbox) {
	a.Token = "t-" + box.id
	m.stores[store][a.Key] = &storedEntry{a: a, box: box}
}

// show makes the kubelet write the addresses into the pod's status.
func (m *kubeletModel) show(name string) {
	pod := m.pods[name]
	if pod == nil || pod.box == nil || !m.up(pod.Node) {
		return
	}
	pod.AddressUnknown, pod.Starting, pod.Sandbox, pod.Interfaces = false, false, pod.box.id, nil
	pod.Addresses, pod.InStatus, pod.shown = nil, 0, pod.box
	for store := range m.stores {
		for _, e := range m.stores[store] {
			if e.box == pod.box {
				pod.Addresses = append(pod.Addresses, e.a.IP)
				if store == inCalico && e.a.IP.As4()[1] != secondNetwork {
					slices.Reverse(pod.Addresses) // the status comes first
					pod.InStatus = 1
				}
				if store == inPool {
					pod.Interfaces = on("net1", e.a.IP)
				}
			}
		}
	}
	m.note("show %s %v", name, pod.Addresses)
}

// forceDelete removes the pod from the API. Its kubelet ends it if it can hear of that.
func (m *kubeletModel) forceDelete(name string) {
	pod := m.pods[name]
	if pod == nil {
		return
	}
	delete(m.pods, name)
	if pod.box != nil {
		if pod.box.grace > 30*time.Second && !pod.box.noted {
			pod.box.grace = 30 * time.Second // no run could know
		}
		pod.box.deleted = true
		pod.box.stuck = pod.box.stuck && pod.box.hung // otherwise no run could know
		if m.up(pod.Node) && !pod.box.stuck {
			pod.box.ends = m.now.Add(pod.box.grace)
		}
	}
	m.note("delete %s by force", name)
}

func (m *kubeletModel) ready(node string, ready bool) {
	n := m.nodes[node]
	if n == nil || n.Ready == ready {
		return
	}
	n.Ready, n.Since, n.Lost = ready, m.now, false
	if n.OutOfService && !ready { // the taint that was forgotten is true again
		m.boxes = slices.DeleteFunc(m.boxes, func(b *sandbox) bool { return b.node == node })
	}
	if ready {
		n.Since = m.now.Add(m.clock[node])
	}
	for _, b := range m.boxes {
		if b.node == node && b.deleted && !b.stuck {
			b.ends = time.Time{}
			if ready {
				b.ends = m.now.Add(b.grace + 10*time.Second)
			}
		}
	}
	m.note("%s ready: %v", node, ready)
}

// restart gives the pod another sandbox; the DEL of the first one fails.
func (m *kubeletModel) restart(name string) {
	pod := m.pods[name]
	if pod == nil || pod.box == nil || pod.box.stuck || !m.up(pod.Node) {
		return
	}
	m.end(pod.box)
	pod.box = nil
	m.note("restart %s", name)
	m.add(name)
}

func (m *kubeletModel) end(box *sandbox) {
	m.boxes = slices.DeleteFunc(m.boxes, func(b *sandbox) bool { return b == box })
}

// graceful deletes the pod when its sandbox has ended; its DEL fails.
func (m *kubeletModel) graceful(name string) {
	pod := m.pods[name]
	if pod == nil || pod.box != nil && pod.box.stuck || !m.up(pod.Node) {
		return
	}
	if pod.box != nil {
		m.end(pod.box)
	}
	delete(m.pods, name)
	m.note("delete %s", name)
}

func (m *kubeletModel) pass(d time.Duration) {
	m.now = m.now.Add(d)
	for name, pod := range m.pods { // no ADD takes longer than 4 minutes
		if pod.box != nil && d >= 40*time.Second && pod.shown != pod.box {
			m.show(name)
		}
	}
	for _, b := range slices.Clone(m.boxes) {
		if !b.ends.IsZero() && !m.now.Before(b.ends) {
			m.end(b)
		}
	}
}

// run plans. It returns a violation, or nothing.
func (m *kubeletModel) run(grace time.Duration, broken int) string {
	for name, pod := range m.pods {
		if m.known["in flight"] && pod.shown != pod.box {
			m.show(name)
		}
	}
	w := newSequence()
	for store := range m.stores {
		w.backends = append(w.backends, modelStore{m: m, store: store, broken: store == broken})
	}
	w.policy.GracePeriod = &policy.Duration{Duration: grace}
	w.ledger, w.now = m.ledger, m.now
	w.endpoints = map[ipam.PodRef]ipam.Endpoint{}
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		pod := m.pods[name].Pod
		w.lists.Pods = append(w.lists.Pods, pod)
		w.endpoints[pod.Ref] = m.told[pod.Node+"/"+name]
	}
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		w.lists.Nodes = append(w.lists.Nodes, *m.nodes[name])
	}
	w.lists.Sets = []census.StatefulSet{{Namespace: "default", Name: "p", Replicas: m.wanted}}
	decisions := w.run(m.t)
	m.ledger = w.ledger
	m.note("run, grace %v, broken %d", grace, broken)
	for _, d := range decisions {
		a := d.Allocation
		store := slices.Index(storeNames[:], a.Backend)
		stored := m.stores[store][a.Key]
		m.note("  %s %s %s of %s: %s %s (%s)", a.Backend, a.IP, a.Owner.Pod, a.Owner.Node, d.Verdict, d.Reason, d.Note)
		if d.Verdict != judge.Orphaned {
			continue
		}
		unseen := m.known["names differ"] && !stored.seen // its node cannot be known
		unseen = unseen || stored.box.misnamed && !stored.box.meant && !stored.seen || m.known["a clone"] && store != inCalico
		if slices.Contains(m.boxes, stored.box) && (!m.known["adopted"] || !stored.news) && !unseen {
			return fmt.Sprintf("%s %s of %s is planned, and %s runs on %s", a.Backend, a.IP, stored.box.pod, stored.box.id, stored.box.node)
		}
		delete(m.stores[store], a.Key)
	}
	for _, p := range m.pods {
		if p.box != nil && broken < 0 {
			p.box.noted, p.box.hung = true, p.box.hung || m.hangs(p)
			m.learn(p)
			for store := range m.stores {
				for _, e := range m.stores[store] {
					if e.box == p.box && slices.Contains(p.Addresses, e.a.IP) {
						e.news, e.seen = false, true
					}
				}
			}
		}
	}
	return ""
}

// forge makes the owner of the pod write annotations on it: no address, or those of other
// allocations, and any sandbox. The status stays.
func (m *kubeletModel) forge(t *rapid.T, name string) {
	pod := m.pods[name]
	if pod == nil {
		return
	}
	var claimed []netip.Addr
	pod.Addresses = slices.Clone(pod.Addresses[:pod.InStatus])
	sandboxes := []string{"forged"}
	for _, store := range m.stores {
		for _, key := range slices.Sorted(maps.Keys(store)) {
			if owner := store[key].a.Owner; owner.Pod == pod.Ref && owner.Sandbox != "" {
				sandboxes = append(sandboxes, owner.Sandbox)
			}
			if ip := store[key].a.IP; rapid.IntRange(0, 3).Draw(t, "claims "+ip.String()) == 0 {
				claimed = append(claimed, ip)
				pod.Addresses = append(pod.Addresses, ip)
			}
		}
	}
	pod.Interfaces = on("net1", claimed...)
	pod.Sandbox = rapid.SampledFrom(sandboxes).Draw(t, "sandbox")
	if pod.InStatus > 0 {
		pod.AddressUnknown, pod.Starting = false, false
	}
	m.note("forge %s: %s %v", name, pod.Sandbox, pod.Addresses)
}

func (m *kubeletModel) days(t *rapid.T, listingsFail bool) {
	for i := range 3 {
		node := fmt.Sprint("n", i)
		if m.known["clocks differ"] {
			m.clock[node] = rapid.SampledFrom([]time.Duration{0, 10 * time.Minute, -10 * time.Minute}).Draw(t, "clock of "+node)
		}
		if m.known["names differ"] && rapid.Bool().Draw(t, node+" has another name") {
			m.alias[node] = node + "-calico"
		}
		if m.known["a clone"] && rapid.Bool().Draw(t, node+" is a clone") {
			m.clone(node, rapid.IntRange(0, 2).Draw(t, "of"))
		}
		if m.known["domains differ"] && rapid.Bool().Draw(t, node+" has a domain") {
			m.alias[node] = node + ".corp.example"
		}
	}
	run := func() {
		broken := -1
		if listingsFail {
			broken = rapid.SampledFrom([]int{-1, -1, -1, 0, 1, 2}).Draw(t, "broken")
		}
		grace := rapid.SampledFrom([]time.Duration{2 * time.Minute, 15 * time.Minute}).Draw(t, "grace")
		if v := m.run(grace, broken); v != "" {
			t.Fatalf("%s\n%s", v, strings.Join(m.log, "\n"))
		}
	}
	for range rapid.IntRange(5, 45).Draw(t, "events") {
		name := fmt.Sprint("p-", rapid.IntRange(0, 1).Draw(t, "pod"))
		node := fmt.Sprint("n", rapid.IntRange(0, 2).Draw(t, "node"))
		switch rapid.SampledFrom([]string{"create", "create", "without a trace", "create on host", "add", "show", "up", "up", "force", "force", "graceful", "restart", "away", "back", "scale", "fence", "hide", "forge", "restart and forge", "hang", "clone", "reboot", "leave", "join", "lose", "loop", "loop twice", "pass", "pass", "run", "run"}).Draw(t, "what") {
		case "create":
			m.create(name, node, rapid.SampledFrom([]time.Duration{30 * time.Second, time.Hour}).Draw(t, "termination"))
		case "create on host":
			m.createOnHost(name, node)
		case "add":
			m.add(name)
		case "show":
			m.show(name)
		case "up":
			m.create(name, node, rapid.SampledFrom([]time.Duration{30 * time.Second, time.Hour}).Draw(t, "termination"))
			m.add(name)
			m.show(name)
		case "force":
			m.forceDelete(name)
		case "graceful":
			m.graceful(name)
		case "restart":
			m.restart(name)
		case "scale":
			m.wanted = rapid.IntRange(0, 2).Draw(t, "replicas")
			m.note("scale to %d", m.wanted)
		case "fence":
			if n := m.nodes[node]; n != nil && !n.Ready {
				n.OutOfService = true
				m.boxes = slices.DeleteFunc(m.boxes, func(b *sandbox) bool { return b.node == node })
				m.note("fence %s", node)
			}
		case "hide":
			if pod := m.pods[name]; pod != nil && pod.shown != nil {
				pod.AddressUnknown, pod.Interfaces, pod.Addresses = true, nil, pod.Addresses[:pod.InStatus]
				m.note("hide %s", name)
			}
		case "hang":
			m.hang(name)
		case "clone":
			if m.known["a clone"] {
				m.clone(node, rapid.IntRange(0, 2).Draw(t, "of"))
			}
		case "without a trace":
			if m.known["a clone"] {
				m.loseTrace(name, node, run)
			}
		case "reboot":
			m.reboot(node)
		case "leave":
			m.leave(node)
		case "join":
			m.join(node)
		case "lose":
			m.lose(node)
		case "loop":
			m.loop(name)
		case "loop twice":
			m.create(name, node, 30*time.Second)
			m.loop(name)
			m.pass(4 * time.Minute)
			m.loop(name)
		case "restart and forge":
			m.restart(name)
			m.show(name)
			m.forge(t, name)
		case "forge":
			m.forge(t, name)
		case "away":
			m.ready(node, false)
		case "back":
			m.ready(node, true)
		case "pass":
			m.pass(rapid.SampledFrom([]time.Duration{5 * time.Second, 40 * time.Second, 4 * time.Minute, 15 * time.Minute, time.Hour}).Draw(t, "time"))
		case "run":
			run()
		}
	}
	if v := m.rest(); v != "" {
		t.Fatalf("%s\n%s", v, strings.Join(m.log, "\n"))
	}
}

// rest lets the cluster come to rest, and returns what is left although it is dead.
func (m *kubeletModel) rest() string {
	m.wanted = 0
	for node := range m.alias {
		m.join(node)
		m.ready(node, true)
		m.reboot(node) // nothing else ends what is stuck
	}
	m.pass(2 * time.Hour)
	for name, pod := range m.pods {
		// What was forged goes, and what plugins wrote is there again.
		pod.Addresses, pod.Interfaces, pod.Sandbox = pod.Addresses[:pod.InStatus], nil, pod.wrote.Sandbox
		if pod.Addresses = append(pod.Addresses, pod.wrote.Addresses...); pod.box != nil {
			m.show(name)
		}
	}
	for range 16 {
		m.pass(15*time.Minute + time.Second)
		if v := m.run(15*time.Minute, -1); v != "" {
			return v
		}
	}
	for store := range m.stores {
		for _, e := range m.stores[store] {
			pod := m.pods[e.a.Owner.Pod.Name]
			replaced := pod != nil && (pod.HostNetwork || store == inCalico && m.isReplaced(pod, e))
			if !slices.Contains(m.boxes, e.box) && (pod == nil || replaced) {
				return fmt.Sprintf("%s %s of %s is left", storeNames[store], e.a.IP, e.a.Owner.Pod)
			}
		}
	}
	return ""
}

// Promise 1, 2. Pods are deleted by force, nodes are cut off and come back, pods come back
// on any node, and listings fail. No run plans an address of a running sandbox, and in the
// end nothing is left of those that ended.
func TestModelRunningSandboxesKeepTheirAddresses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fails bool
		known []string
	}{
		{"all is seen", false, []string{"adopted", "in flight"}},
		{"clocks differ", false, []string{"adopted", "in flight", "clocks differ"}},
		{"listings fail", true, []string{"adopted", "in flight"}},
		{"pods stand for their endpoints", false, []string{"adopted", "in flight", "endpoints in pods"}},
		{"names differ", false, []string{"adopted", "in flight", "names differ"}},
		{"domains differ", false, []string{"adopted", "in flight", "domains differ"}},
		{"a node books under the name of another", false, []string{"adopted", "in flight", "a clone"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rounds := 5 // the sequences of one Check miss rare ones
			if testing.Short() {
				rounds = 2
			}
			for range rounds {
				rapid.Check(t, func(rt *rapid.T) { newKubeletModel(t, tt.known...).days(rt, tt.fails) })
			}
		})
	}
}
