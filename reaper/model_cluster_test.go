package reaper_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// inFlight is the longest time from an ADD to the address in the pod's status.
const inFlight = 4 * time.Minute

// A model is a small cluster with its stores, and the truth about it: which pods exist,
// and which addresses the plugin gave to their sandboxes. A run sees only what pods and
// nodes show and what the stores hold.
type model struct {
	*harness
	stores []*backendtest.Memory

	mu        sync.Mutex
	alive     map[string]*modelPod // by name
	zombies   []*modelPod          // deleted pods whose sandboxes run on a node that is away
	away      map[string]bool      // nodes that are not ready
	past      []grant              // of sandboxes that have ended
	made      int
	runs      int
	unsaved   bool                // the current run could not read or write its ledger
	within    bool                // another run takes place during it
	ctx       context.Context     // of the test
	violation string              // the first one; empty if there is none
	calls     map[string]int      // of the current run, by kind
	last      string              // the kind of the last call
	meanwhile map[string][]action // actions by moment
	broken    string              // the kind of calls that fail; empty: none
	crashAt   string              // the moment at which the run is killed; empty: none
	killed    bool
	crash     func()
}

// A modelPod is a pod that exists.
type modelPod struct {
	owner   ipam.Owner
	grants  map[int]grant // of its current sandbox, by store
	begun   bool          // an ADD has written the handle, and not the block
	pending time.Time     // of the first ADD that its status does not show; zero if none
	shown   census.Pod
}

// A grant has the addresses that the plugin gave to a sandbox: one, or two in the store
// with handles. The pod shows the first.
type grant struct {
	store   int
	asks    ipam.Owner
	got     []ipam.Allocation
	renamed bool // one of the addresses names a wrong pod, by mistake
	noted   bool // a run saved its node in the ledger
}

// The stores that tell apart what the sandboxes of one pod have, by index: the one
// that does not know nodes, and the one that has handles.
const (
	withoutNodes = 2
	withHandles  = 3
)

func newModel() *model {
	m := &model{
		alive: make(map[string]*modelPod), away: make(map[string]bool), calls: make(map[string]int),
		stores: []*backendtest.Memory{
			backendtest.NewMemory("adopting"), backendtest.NewTwoStep("two-step"),
			backendtest.NewForgetful("forgetful"), backendtest.NewHandled("handled"),
		},
	}
	m.stores[withHandles].SetClock(func() time.Time { // so that no two sandboxes have the same time
		return m.now.Add(time.Duration(m.made) - time.Second)
	})
	m.harness = newHarness()
	m.policy.Limits.MaxFraction, m.policy.Limits.MinEntries = new(1.0), new(1_000_000)
	m.pods.Add(census.Pod{Ref: ipam.PodRef{Namespace: "kube-system", Name: "dns"}})
	m.pods.OnCall(m.call)
	m.journal.OnWrite(func() error { return m.call("journal") })
	m.ledgers.onLoad = func() error { return m.onLedger("load") }
	m.ledgers.onSave = func() error { return m.onLedger("save") }
	for i, s := range m.stores {
		s.OnRequest(m.call)
		m.backends = append(m.backends, s.Backend())
		for n := range 2 * i { // so that the pools have other ranges in each store
			skipped := fmt.Sprint("skipped-", n)
			_, _ = s.Reserve(skipped, app("dns"))
			_ = s.Free(skipped, app("dns"))
		}
	}
	m.change = func(o *reaper.Options) {
		m.runs++
		o.ID = m.runID()
	}
	return m
}

// create creates a pod of that name.
func (m *model) create(name string) *modelPod {
	m.made++
	owner := app(name)
	owner.UID, owner.Node = fmt.Sprintf("uid-%d", m.made), fmt.Sprintf("node-%d", m.made)
	shown := census.Pod{Ref: owner.Pod, UID: owner.UID, Node: owner.Node}
	pod := &modelPod{owner: m.sandbox(owner), grants: make(map[int]grant), shown: shown}
	m.alive[name] = pod
	m.pods.Add(pod.shown)
	m.pods.AddNodes(census.Node{Name: owner.Node, Ready: true})
	return pod
}

// nodesReturn makes all nodes ready again. They end the sandboxes whose pods were
// deleted.
func (m *model) nodesReturn() {
	for node := range m.away {
		m.pods.AddNodes(census.Node{Name: node, Ready: true})
	}
	clear(m.away)
	for _, pod := range m.zombies {
		m.end(pod)
	}
	m.zombies = nil
}

// sandbox returns the owner with a new sandbox.
func (m *model) sandbox(owner ipam.Owner) ipam.Owner {
	m.made++
	owner.Sandbox = fmt.Sprintf("<sandbox-%d>", m.made)
	return owner
}

// end ends the pod's sandbox without a DEL.
func (m *model) end(pod *modelPod) {
	for store := range m.stores {
		if g, ok := pod.grants[store]; ok {
			m.past = append(m.past, g)
		}
	}
}

// add makes the plugin allocate addresses for the pod's sandbox, once.
func (m *model) add(pod *modelPod, store int) {
	if _, has := pod.grants[store]; has {
		return
	}
	g := grant{store: store, asks: pod.owner}
	owner := pod.owner
	if store == withoutNodes {
		owner.Node = ""
	}
	for _, pool := range poolNames(store) {
		got, err := m.stores[store].Reserve(pool, owner)
		if err != nil {
			m.violated(err.Error())
			return
		}
		g.got = append(g.got, got)
	}
	for _, p := range m.alive {
		other, ok := p.grants[store]
		for _, a := range other.got {
			if ok && p != pod && g.has(a.IP) {
				m.violated(fmt.Sprintf("%s was given to %s and to %s", a.IP, other.asks.Pod, pod.owner.Pod))
			}
		}
	}
	pod.grants[store] = g
	m.inFlight(pod)
}

// inFlight notes the beginning of an ADD whose address the pod does not show yet.
func (m *model) inFlight(pod *modelPod) {
	if pod.pending.IsZero() {
		pod.pending = m.now
	}
}

// poolNames returns the pools of a store from which one ADD allocates.
func poolNames(store int) []string {
	if store == withHandles {
		return []string{"a", "b"}
	}
	return []string{"a"}
}

// free carries out a DEL.
func (m *model) free(g grant) {
	for _, pool := range poolNames(g.store) {
		_ = m.stores[g.store].Free(pool, g.asks)
	}
}

func (g grant) has(ip netip.Addr) bool {
	return slices.ContainsFunc(g.got, func(a ipam.Allocation) bool { return a.IP == ip })
}

// show ends the pod's ADDs and writes its addresses into its status.
func (m *model) show(pod *modelPod) {
	if pod.begun {
		m.add(pod, withHandles)
		pod.begun = false
	}
	shown := census.Pod{Ref: pod.owner.Pod}
	inStatus := 0 // the status has the first address, if that one has a handle
	for _, store := range []int{withHandles, 0, 1, withoutNodes} {
		if g, ok := pod.grants[store]; ok {
			shown.Addresses = append(shown.Addresses, g.got[0].IP)
			if store == withHandles {
				inStatus = 1
			}
		}
	}
	if len(shown.Addresses) > 0 {
		shown = showing(pod.owner.Pod, shown.Addresses...)
	}
	shown.InStatus = inStatus
	shown.UID, shown.Node = pod.owner.UID, pod.owner.Node
	if _, ok := pod.grants[withHandles]; ok {
		shown.Sandbox = pod.owner.Sandbox
	}
	m.pods.Add(shown)
	pod.shown, pod.pending = shown, time.Time{}
}

// Promise 1. check fails unless the stores hold all addresses of existing pods. They
// must also hold those of sandboxes on a node that is away, if the store names the node
// or a run noted it.
func (m *model) check(after string) {
	for store, s := range m.stores {
		snapshot, _ := s.Snapshot()
		running := slices.Collect(maps.Values(m.alive))
		for _, pod := range m.zombies {
			if store == withHandles || pod.grants[store].noted {
				running = append(running, pod)
			}
		}
		for _, pod := range running {
			for _, a := range pod.grants[store].got {
				content := snapshot[backendtest.Place(a)]
				if !strings.Contains(content, " of "+pod.owner.Sandbox+" ") || strings.Contains(content, "without a handle") {
					m.violated(fmt.Sprintf("after %s: %s runs, and %s does not hold %s for it but %q",
						after, pod.owner.Pod, s.Backend().Name(), a.IP, content))
				}
			}
		}
	}
}

// violated keeps the first violation of a promise.
func (m *model) violated(what string) {
	if m.violation == "" {
		m.violation = what
	}
}
