package reaper_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// The conditions of a release are how old a look may be at each of its writes, and what the
// plugin does.
type conditions struct {
	entry     time.Duration // when an entry of the pool is removed
	tombstone time.Duration // when a tombstone is written
	again     time.Duration // when a reservation is deleted, after another look
	once      bool          // there is no look after the tombstone
	weak      bool          // there is no tombstone, and the token of a reservation proves nothing

	starts     time.Duration // the least time from the creation of a pod to its ADD
	adoptsNone bool          // the plugin is of a version whose ADD adopts no entry
	asleep     bool          // the machine of the run sleeps until the ADD begins
	del        bool          // a late DEL of the sandbox that had the address is under way, too
}

// points are where other clients write during a run that finds an entry and its reservation
// without an owner: before each of its requests.
var points = []string{
	"look 1", "remove the entry", "look 2", "check", "write the tombstone", "list the pools",
	"look 3", "delete the reservation", "end",
}

// A script says at which points other clients make their requests.
type script struct {
	create  int    // a pod of the same name comes back
	first   int    // its ADD begins
	steps   int    // how many requests it makes then
	then    int    // it makes the others
	del     [2]int // the DEL makes its two requests; none at -1
	address int    // that of the entry; 1 is the lowest
	busy    bool   // see pluginCall
}

// scripts calls run for each script in which an ADD is interrupted after the creation of its
// pod and after any number of its requests; with a DEL, for each in which the ADD is interrupted
// once. run reports whether the ADD ended before the second interruption.
func scripts(del bool, run func(script) (ended bool)) {
	end := len(points) - 1
	for n := range 4 {
		s := script{address: 1 + n%2, busy: n >= 2, del: [2]int{-1, -1}}
		for s.create = range end {
			for s.first = s.create; s.first <= end; s.first++ {
				if del {
					withDel(s, run)
					continue
				}
				for s.then = s.first; s.then <= end; s.then++ {
					for s.steps = 1; !run(s) && s.then > s.first; s.steps++ {
						continue
					}
				}
			}
		}
	}
}

// withDel is scripts for a DEL.
func withDel(s script, run func(script) bool) {
	s.then = s.first
	for i := range points {
		for j := range points[i:] {
			s.del = [2]int{i, i + j}
			run(s)
		}
	}
}

// An agesModel is one run during a script.
type agesModel struct {
	*harness
	*sharedRange
	conditions
	script
	t      *testing.T
	adding pluginCall
	ending pluginDel

	at      int // the point that was reached last
	looks   int
	created time.Time
	slept   time.Duration // by the wall clock alone
	began   time.Time     // of the last look
	looked  time.Duration // what slept was then
	ended   bool          // the ADD, before its second interruption
	broken  string        // the first violation
}

func newAgesModel(t *testing.T, c conditions, s script) *agesModel {
	m := &agesModel{
		sharedRange: newSharedRange(), conditions: c, script: s, t: t, at: -1,
		adding: pluginCall{pod: "web-0", box: "now", busy: s.busy, adoptsNone: c.adoptsNone}, ending: pluginDel{box: "before"},
	}
	m.put(s.address, &rangeEntry{"web-0", "before"})
	m.reserve(s.address, "web-0")
	m.harness = newHarness(modelEntries{agesBackend{m: m}}, modelReservations{agesBackend{m: m}})
	m.policy.Limits.MaxFraction = new(1.0)
	m.pods.Add(census.Pod{Ref: ipam.PodRef{Namespace: "kube-system", Name: "dns"}})
	m.pods.OnCall(func(call string) error {
		if call == "get pod default/web-0" {
			m.began, m.looked = time.Now(), m.slept
			m.looks++
			m.reach(fmt.Sprint("look ", m.looks))
		}
		return nil
	})
	return m
}

// reach does what the script has before a request of the run.
func (m *agesModel) reach(point string) {
	for m.at < slices.Index(points, point) {
		m.at++
		for n := range 2 {
			if m.script.del[n] == m.at {
				m.ending.step(m.sharedRange)
			}
		}
		if m.at == m.create {
			m.step()
		}
		if m.at == m.first {
			m.wait()
			for range m.steps {
				m.step()
			}
			m.ended = m.adding.next == pluginDone
		}
		for m.at == m.then && m.adding.next != pluginDone {
			m.step()
		}
	}
}

// step makes the next request of the ADD.
func (m *agesModel) step() {
	if m.adding.next == createPod {
		m.created = time.Now()
		m.pods.Add(census.Pod{Ref: app("web-0").Pod, UID: "now", AddressUnknown: true, Starting: true})
	}
	m.adding.step(m.sharedRange)
	m.check(false)
}

// wait lets the time pass until the ADD of the pod begins.
func (m *agesModel) wait() {
	rest := m.starts - time.Since(m.created) - m.slept
	switch {
	case rest <= 0:
	case m.asleep:
		m.slept += rest
	default:
		time.Sleep(rest)
	}
}

// finish does what is left, and returns the first violation.
func (m *agesModel) finish() string {
	m.reach("end")
	m.check(true)
	return m.broken
}

// check keeps the first violation.
func (m *agesModel) check(over bool) { m.broken = cmp.Or(m.broken, m.adding.lost(m.sharedRange, over)) }

// ask asks a warrant for its allocation, as would a program whose looks may be that old, on a
// machine that has slept since the look.
func (m *agesModel) ask(w ipam.Warrant, most time.Duration) (ipam.Allocation, error) {
	awake := time.Since(m.began)
	age := ipam.AgeOf(reapertest.Looked(m.t, twoClocks, awake, awake+m.slept-m.looked), twoClocks)
	return lookedAt(w, time.Now().Add(most-ipam.Freshness-age)).Allocation()
}

// twoClocks is a time by both clocks. In a bubble of synctest, there is only one.
var twoClocks = time.Now()

// lookedAt returns a warrant as if its look had begun at another time.
func lookedAt(w ipam.Warrant, began time.Time) ipam.Warrant {
	return ipam.NewWarrant(w.For(), began, renewerOf{w})
}

// renewerOf renews a warrant in place of the one that it was made from.
type renewerOf struct{ w ipam.Warrant }

func (r renewerOf) Renew(ctx context.Context, _ []ipam.Warrant) ([]ipam.Warrant, []error) {
	return ipam.Renew(ctx, []ipam.Warrant{r.w})
}
