package reaper_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An action is one event in the cluster, drawn before it takes place.
type action struct {
	What  string
	Pod   int
	Store int
	Call  string // the fault of the call at which it takes place
}

// Deleted pods and pods that come back are drawn most often.
var actions = []string{
	"return", "return", "return", "delete", "delete", "restart", "inherit", "show", "create", "add", "late del", "del", "mistake",
	"begin", "annotate", "away", "back", "run", "run",
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
var kinds = []string{
	"list", "list pods", "list nodes", "load", "save", "record", "journal",
	"get", "release", "settle", "bury", "renew", "remove", "restore",
}

// drawMoment draws the nth call of a kind.
func drawMoment(t *rapid.T) string {
	return moment(rapid.SampledFrom(kinds).Draw(t, "call"), rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3}).Draw(t, "nth"))
}

func moment(kind string, n int) string { return fmt.Sprintf("%s %d", kind, n) }

// do carries out an action, if it is possible. The caller holds the lock.
func (m *model) do(a action) {
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
		m.nodesReturn()
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
		m.pods.AddNodes(census.Node{Name: pod.owner.Node})
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
			m.stores[a.Store].Rename(g.got[m.made%len(g.got)], ipam.PodRef{Namespace: "default", Name: "never-was"})
			g.renamed, g.noted = true, false
			pod.grants[a.Store] = g
		}
	}
	m.check(fmt.Sprint(a))
}

// call is the hook of every call to cluster and stores. Actions take place before it,
// the call or its answer may get lost, and the run may be killed.
func (m *model) call(what string) error {
	m.mu.Lock()
	if m.within {
		m.check("before another run's " + what)
		m.mu.Unlock()
		return nil
	}
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
	if released := kind == "release" || kind == "bury" || kind == "remove"; released && m.journal.Read().Run.ID != m.runID() {
		m.violated(what + " came before the journal") // Promise 10
	}
	m.killed = m.killed || m.crashAt == at
	killed := m.killed
	another := slices.ContainsFunc(now, func(a action) bool { return a.What == "run" }) &&
		!slices.Contains([]string{"load", "save", "journal"}, kind) // the lock is held during these
	m.within = another
	m.mu.Unlock()
	if another {
		m.concurrentRun()
	}
	var failure error
	if kind == m.broken {
		failure = errConnection
	}
	for _, a := range now {
		switch a.Call {
		case "slow":
			time.Sleep(ipam.Freshness * 3 / 5)
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
