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
)

// inFlight is the longest time from an ADD to the address in the pod's status.
const inFlight = 4 * time.Minute

// A modelled is a small cluster with its stores, and the truth about it: which
// pods exist, and what the plugin gave to their sandboxes. A run knows nothing
// of the truth but what pods and nodes show and stores hold.
type modelled struct {
	*world
	stores []*backendtest.Memory

	mu        sync.Mutex
	alive     map[string]*modelPod // by name
	zombies   []*modelPod          // were deleted, and still run on a node that is away
	away      map[string]bool      // the nodes that are
	past      []grant              // of sandboxes that are no more
	made      int
	runs      int
	unsaved   bool                // the current run could not read or write its ledger
	within    bool                // another run goes on in the midst of it
	ctx       context.Context     // of the test
	harm      string              // what went wrong first
	calls     map[string]int      // of the current run, by kind
	last      string              // the kind of the last call
	meanwhile map[string][]action // at these moments
	broken    string              // calls of this kind fail, if it is not empty
	crashAt   string              // this moment, if it is not empty
	killed    bool
	crash     func()
}

// A modelPod is a pod that exists.
type modelPod struct {
	owner   reaper.Owner
	grants  map[int]grant // of its current sandbox, by store
	begun   bool          // half an ADD in the store with handles
	pending time.Time     // of the first ADD that its status does not show; zero if none
	shown   reaper.Pod
}

// A grant is what the plugin gave to a sandbox: one address, or in the store with
// handles two, of which the pod shows the first.
type grant struct {
	store   int
	asks    reaper.Owner
	got     []reaper.Allocation
	renamed bool // one of them, by mistake
	noted   bool // in the ledger: on which node it is
}

// The stores that tell apart what the sandboxes of one pod have, by index: the one
// that does not know nodes, and the one that has handles.
const (
	withoutNodes = 2
	withHandles  = 3
)

func newModelled() *modelled {
	m := &modelled{
		alive: make(map[string]*modelPod), away: make(map[string]bool), calls: make(map[string]int),
		stores: []*backendtest.Memory{
			backendtest.NewMemory("adopting"), backendtest.NewTwoStep("two-step"),
			backendtest.NewForgetful("forgetful"), backendtest.NewHandled("handled"),
		},
	}
	m.stores[withHandles].SetClock(func() time.Time { return m.now })
	m.world = newWorld()
	one, many := 1.0, 1_000_000
	m.policy.Limits.MaxFraction, m.policy.Limits.MinEntries = &one, &many
	m.pods.Add(reaper.Pod{Ref: reaper.PodRef{Namespace: "kube-system", Name: "dns"}})
	m.pods.OnCall(m.call)
	m.journal.OnWrite(func() error { return m.call("journal") })
	m.notes.onLoad = func() error { return m.remembering("load") }
	m.notes.onSave = func() error { return m.remembering("save") }
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
		o.ID, o.Concurrency = m.runID(), 1
	}
	return m
}

// create makes a pod of that name exist.
func (m *modelled) create(name string) *modelPod {
	m.made++
	owner := app(name)
	owner.UID, owner.Node = fmt.Sprintf("uid-%d", m.made), fmt.Sprintf("node-%d", m.made)
	shown := reaper.Pod{Ref: owner.Pod, UID: owner.UID, Node: owner.Node}
	pod := &modelPod{owner: m.sandbox(owner), grants: make(map[int]grant), shown: shown}
	m.alive[name] = pod
	m.pods.Add(pod.shown)
	m.pods.AddNodes(reaper.Node{Name: owner.Node, Ready: true})
	return pod
}

// back has all nodes return, which end what they should not run any more.
func (m *modelled) back() {
	for node := range m.away {
		m.pods.AddNodes(reaper.Node{Name: node, Ready: true})
	}
	clear(m.away)
	for _, pod := range m.zombies {
		m.end(pod)
	}
	m.zombies = nil
}

// sandbox gives the owner a new one.
func (m *modelled) sandbox(owner reaper.Owner) reaper.Owner {
	m.made++
	owner.Sandbox = fmt.Sprintf("<sandbox-%d>", m.made)
	return owner
}

// end ends the pod's sandbox without a DEL.
func (m *modelled) end(pod *modelPod) {
	for store := range m.stores {
		if g, ok := pod.grants[store]; ok {
			m.past = append(m.past, g)
		}
	}
}

// add lets the plugin reserve an address for the pod's sandbox, once.
func (m *modelled) add(pod *modelPod, store int) {
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
			m.harmed(err.Error())
			return
		}
		g.got = append(g.got, got)
	}
	for _, p := range m.alive {
		other, ok := p.grants[store]
		for _, r := range other.got {
			if ok && p != pod && g.has(r.IP) {
				m.harmed(fmt.Sprintf("%s was given to %s and to %s", r.IP, other.asks.Pod, pod.owner.Pod))
			}
		}
	}
	pod.grants[store] = g
	m.inFlight(pod)
}

// inFlight remembers that an ADD has begun of which the pod shows nothing yet.
func (m *modelled) inFlight(pod *modelPod) {
	if pod.pending.IsZero() {
		pod.pending = m.now
	}
}

// pools are where a sandbox gets addresses at one time.
func poolNames(store int) []string {
	if store == withHandles {
		return []string{"a", "b"}
	}
	return []string{"a"}
}

// free does what a DEL does.
func (m *modelled) free(g grant) {
	for _, pool := range poolNames(g.store) {
		_ = m.stores[g.store].Free(pool, g.asks)
	}
}

func (g grant) has(ip netip.Addr) bool {
	return slices.ContainsFunc(g.got, func(r reaper.Allocation) bool { return r.IP == ip })
}

// show ends the pod's ADDs and writes what it has into its status.
func (m *modelled) show(pod *modelPod) {
	if pod.begun {
		m.add(pod, withHandles)
		pod.begun = false
	}
	shown := reaper.Pod{Ref: pod.owner.Pod}
	for store := range m.stores {
		if g, ok := pod.grants[store]; ok {
			shown.Addresses = append(shown.Addresses, g.got[0].IP)
		}
	}
	if len(shown.Addresses) > 0 {
		shown = showing(pod.owner.Pod, shown.Addresses...)
	}
	shown.UID, shown.Node = pod.owner.UID, pod.owner.Node
	if _, ok := pod.grants[withHandles]; ok {
		shown.Sandbox = pod.owner.Sandbox
	}
	m.pods.Add(shown)
	pod.shown, pod.pending = shown, time.Time{}
}

// check looks whether the stores hold what the plugin gave to existing pods, and
// what runs on a node that is away where the store names that, or a run noted it.
// Promise 1.
func (m *modelled) check(after string) {
	for store, s := range m.stores {
		snapshot, _ := s.Snapshot()
		running := slices.Collect(maps.Values(m.alive))
		for _, pod := range m.zombies {
			if store == withHandles || pod.grants[store].noted {
				running = append(running, pod)
			}
		}
		for _, pod := range running {
			for _, r := range pod.grants[store].got {
				content := snapshot[backendtest.Place(r)]
				if !strings.Contains(content, " of "+pod.owner.Sandbox+" ") || strings.Contains(content, "without a handle") {
					m.harmed(fmt.Sprintf("after %s: %s runs, and %s does not hold %s for it but %q",
						after, pod.owner.Pod, s.Backend().Name(), r.IP, content))
				}
			}
		}
	}
}

// harmed remembers what went wrong first.
func (m *modelled) harmed(what string) {
	if m.harm == "" {
		m.harm = what
	}
}
