package reaper_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"

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
	store int
	asks  reaper.Owner
	got   []reaper.Reservation
}

// withHandles is the index of the store that has them, and names nodes.
const withHandles = 3

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
	for i, s := range m.stores {
		s.OnRequest(m.call)
		m.backends = append(m.backends, s.Backend())
		for n := range 2 * i { // so that the pools have other ranges in each store
			skipped := fmt.Sprint("skipped-", n)
			_, _ = s.Reserve(skipped, app("dns"))
			_ = s.Free(skipped, app("dns"))
		}
	}
	m.change = func(o *reaper.Options) { o.Concurrency = 1 }
	return m
}

// An action is one thing that happens in the cluster, drawn before it does.
type action struct {
	What  string
	Pod   int
	Store int
	Call  string // what becomes of the call that it happens at
}

// Deleted pods and those that return are what matters most.
var actions = []string{
	"return", "return", "return", "delete", "delete", "restart", "inherit", "show", "create", "add", "late del", "del", "mistake",
	"begin", "annotate", "away", "back",
}

func drawAction(t *rapid.T) action {
	return action{
		rapid.SampledFrom(actions).Draw(t, "what"),
		rapid.IntRange(0, 2).Draw(t, "pod"),
		rapid.IntRange(0, withHandles).Draw(t, "store"),
		rapid.SampledFrom([]string{"", "", "", "slow", "fails", "answer lost"}).Draw(t, "the call"),
	}
}

// kinds are the kinds of calls in a run. A renew is the get after a bury.
var kinds = []string{"list", "list pods", "list nodes", "get", "release", "settle", "bury", "renew", "remove", "restore"}

// drawMoment draws the nth call of a kind.
func drawMoment(t *rapid.T) string {
	return moment(rapid.SampledFrom(kinds).Draw(t, "call"), rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3}).Draw(t, "nth"))
}

func moment(kind string, n int) string { return fmt.Sprintf("%s %d", kind, n) }

// do carries out an action, if it makes sense. It is called with the lock held.
func (m *modelled) do(a action) {
	name := fmt.Sprintf("app-%d", a.Pod)
	pod := m.alive[name]
	switch {
	case a.What == "late del" && len(m.past) > 0:
		m.free(m.past[a.Pod%len(m.past)])
	case a.What == "create" && pod == nil:
		m.create(name)
	case a.What == "return" && pod == nil:
		pod = m.create(name)
		for store := range m.stores {
			m.add(pod, store)
		}
	case a.What == "inherit":
		for _, g := range m.past {
			if g.store == a.Store {
				m.free(g)
			}
		}
		if pod == nil {
			pod = m.create(name)
		}
		m.add(pod, a.Store)
	case a.What == "back":
		m.back()
	case pod == nil:
	case a.What == "delete":
		if m.away[pod.owner.Node] {
			m.zombies = append(m.zombies, pod)
		} else {
			m.end(pod)
		}
		delete(m.alive, name)
		m.pods.Remove(pod.owner.Pod)
	case a.What == "away":
		m.away[pod.owner.Node] = true
		m.pods.AddNodes(reaper.Node{Name: pod.owner.Node})
	case a.What == "begin":
		if _, has := pod.grants[withHandles]; !has {
			m.stores[withHandles].Begin(pod.owner.Sandbox)
			pod.begun = true
			m.inFlight(pod)
		}
	case a.What == "annotate":
		// Calico's plugin shows the sandbox before the ADD returns.
		if g, ok := pod.grants[withHandles]; ok {
			pod.shown.Sandbox = pod.owner.Sandbox
			pod.shown.Addresses = append(slices.Clone(pod.shown.Addresses), g.got[0].IP)
			m.pods.Add(pod.shown)
		}
	case a.What == "add":
		m.add(pod, a.Store)
	case a.What == "restart":
		m.end(pod)
		again := pod.grants
		pod.owner, pod.grants, pod.pending, pod.begun = m.sandbox(pod.owner), make(map[int]grant), time.Time{}, false
		for store := range m.stores {
			if _, had := again[store]; had {
				m.add(pod, store)
			}
		}
	case a.What == "show":
		m.show(pod)
	case a.What == "del":
		m.end(pod)
		for _, g := range pod.grants {
			m.free(g)
		}
		pod.owner, pod.grants, pod.begun = m.sandbox(pod.owner), make(map[int]grant), false
		m.show(pod)
	case a.What == "mistake" && pod.pending.IsZero():
		if g, ok := pod.grants[a.Store]; ok {
			m.stores[a.Store].Rename(g.got[m.made%len(g.got)], reaper.PodRef{Namespace: "default", Name: "nobody"})
		}
	}
	m.check(fmt.Sprint(a))
}

// create makes a pod of that name exist.
func (m *modelled) create(name string) *modelPod {
	m.made++
	owner := app(name)
	owner.UID, owner.Node = fmt.Sprintf("uid-%d", m.made), fmt.Sprintf("node-%d", m.made)
	pod := &modelPod{owner: m.sandbox(owner), grants: make(map[int]grant), shown: reaper.Pod{Ref: owner.Pod, UID: owner.UID}}
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
	for _, pool := range pools(store) {
		got, err := m.stores[store].Reserve(pool, pod.owner)
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
func pools(store int) []string {
	if store == withHandles {
		return []string{"a", "b"}
	}
	return []string{"a"}
}

// free does what a DEL does.
func (m *modelled) free(g grant) {
	for _, pool := range pools(g.store) {
		_ = m.stores[g.store].Free(pool, g.asks)
	}
}

func (g grant) has(ip netip.Addr) bool {
	return slices.ContainsFunc(g.got, func(r reaper.Reservation) bool { return r.IP == ip })
}

// show ends the pod's ADDs and writes what it has into its status.
func (m *modelled) show(pod *modelPod) {
	if pod.begun {
		m.add(pod, withHandles)
		pod.begun = false
	}
	shown := reaper.Pod{Ref: pod.owner.Pod, UID: pod.owner.UID}
	for store := range m.stores {
		if g, ok := pod.grants[store]; ok {
			shown.Addresses = append(shown.Addresses, g.got[0].IP)
		}
	}
	if len(shown.Addresses) > 0 {
		shown = showing(pod.owner.Pod, shown.Addresses...)
		shown.UID = pod.owner.UID
	}
	if _, ok := pod.grants[withHandles]; ok {
		shown.Sandbox = pod.owner.Sandbox
	}
	m.pods.Add(shown)
	pod.shown, pod.pending = shown, time.Time{}
}

// check looks whether the stores hold what the plugin gave to existing pods, and
// that which names nodes what runs on one that is away. Promise 1.
func (m *modelled) check(after string) {
	for store, s := range m.stores {
		snapshot, _ := s.Snapshot()
		running := slices.Collect(maps.Values(m.alive))
		if store == withHandles {
			running = append(running, m.zombies...)
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

// call is the hook of every call of cluster and stores: other things happen
// meanwhile, the call or its answer may get lost, and the run may be killed.
func (m *modelled) call(what string) error {
	m.mu.Lock()
	kind, _, _ := strings.Cut(what, " ")
	switch {
	case what == "list pods", what == "list nodes":
		kind = what
	case kind == "get" && m.last == "bury":
		kind = "renew"
	}
	m.last = kind
	m.calls[kind]++
	at := moment(kind, m.calls[kind])
	now := m.meanwhile[at]
	for _, a := range now {
		m.do(a)
	}
	m.check("before " + what)
	m.killed = m.killed || m.crashAt == at
	killed := m.killed
	m.mu.Unlock()
	var failure error
	if kind == m.broken {
		failure = errConnection
	}
	for _, a := range now {
		switch a.Call {
		case "slow":
			time.Sleep(reaper.Freshness * 3 / 5)
		case "fails":
			failure = errConnection
		case "answer lost":
			failure = backendtest.ErrLost
		}
	}
	if killed {
		m.crash()
		return fmt.Errorf("killed before %s", what)
	}
	return failure
}
