package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 1, 8, 10. Events take place before, between and during the calls of a run, or
// in place of them. Another run may be among them. No run releases an address of an
// existing pod, or an allocation that is not in its journal. In the end, runs leave no
// allocation of a pod that is gone.
func TestNoAddressOfAnExistingPodIsEverReleased(t *testing.T) {
	// The hundred sequences of one rapid.Check would miss rare ones.
	rounds := 15
	if testing.Short() {
		rounds = 4
	}
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			// The bubble's T must not be asked for a deadline.
			rapid.Check(struct{ testing.TB }{t}, someDaysOfACluster)
		})
	}
}

// someDaysOfACluster draws events and runs, several times. In the end it checks that
// nothing leaks.
func someDaysOfACluster(t *rapid.T) {
	m := newModel()
	m.ctx = t.Context()
	if rapid.IntRange(0, 9).Draw(t, "an outage") == 0 {
		m.outage()
	}
	for pod := range 3 {
		m.do(action{What: "return", Pod: pod})
		m.do(action{What: "show", Pod: pod})
		if rapid.Bool().Draw(t, "is no more") {
			m.do(action{What: "delete", Pod: pod})
		}
	}
	for range rapid.IntRange(1, 4).Draw(t, "runs") {
		m.betweenRuns(t)
		m.runOnce(t)
		if m.violation != "" {
			t.Fatal(m.violation)
		}
	}
	m.rest(t)
}

// outage leaves so many orphans that owners are looked at in a list.
func (m *model) outage() {
	for n := range 60 {
		_, _ = m.stores[0].Reserve("a", app(fmt.Sprintf("lost-%d", n)))
	}
}

// betweenRuns lets events take place between runs, and time pass.
func (m *model) betweenRuns(t *rapid.T) {
	for range rapid.IntRange(0, 8).Draw(t, "actions") {
		a := drawAction(t)
		m.mu.Lock()
		m.do(a)
		m.mu.Unlock()
	}
	m.pass(rapid.SampledFrom([]time.Duration{0, time.Minute, inFlight - time.Minute, inFlight, 20 * time.Minute}).Draw(t, "time passes"))
	m.policy.GracePeriod = &policy.Duration{Duration: rapid.SampledFrom([]time.Duration{0, 0, time.Minute}).Draw(t, "grace")}
}

// pass lets time pass. No ADD stays in flight for longer than inFlight.
func (m *model) pass(d time.Duration) {
	m.now = m.now.Add(d)
	for _, pod := range m.alive {
		if !pod.pending.IsZero() && !m.now.Before(pod.pending.Add(inFlight)) {
			m.show(pod)
		}
	}
}

// runOnce runs while events take place, and may kill the run.
func (m *model) runOnce(t *rapid.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.calls, m.meanwhile = make(map[string]int), make(map[string][]action)
	m.broken, m.crashAt, m.killed, m.unsaved, m.crash = "", "", false, false, cancel
	if rapid.IntRange(0, 2).Draw(t, "broken") == 0 {
		m.broken = rapid.SampledFrom(kinds).Draw(t, "calls that fail")
	}
	for range rapid.IntRange(0, 6).Draw(t, "meanwhile") {
		at := drawMoment(t)
		m.meanwhile[at] = append(m.meanwhile[at], drawAction(t))
	}
	if rapid.IntRange(0, 3).Draw(t, "killed") == 0 {
		m.crashAt = drawMoment(t)
	}
	m.checkReport(reaper.Run(ctx, m.options()))
	m.check("the run")
}

// runID returns the ID of the current run.
func (m *model) runID() string { return fmt.Sprint("run-", m.runs) }

// checkReport checks the report of a run that has ended. All releases must be in its
// journal (Promise 10). From now on, addresses on the nodes that it saved must be kept.
func (m *model) checkReport(r report.Report, err error) {
	journal := m.journal.Read()
	for _, e := range r.Entries {
		written := slices.ContainsFunc(journal.Records, func(rec ipam.Record) bool {
			return rec.Backend == e.Backend && rec.Pool == e.Pool && rec.Key == e.Key && rec.Owner == e.Owner
		})
		if e.Outcome == report.Released && (!written || journal.Run.ID != m.runID()) {
			m.violated(fmt.Sprintf("%s released %s of %s, which its journal does not have", m.runID(), e.Key, e.Owner.Pod))
		}
		partial := (*report.PartialError)(nil)
		if m.killed || m.unsaved || err != nil && !errors.As(err, &partial) || e.Backend != m.stores[withoutNodes].Backend().Name() {
			continue
		}
		for _, pod := range m.alive {
			if g, ok := pod.grants[withoutNodes]; ok && !g.renamed && g.got[0].Key == e.Key && e.Owner.Node == pod.owner.Node {
				g.noted = true
				pod.grants[withoutNodes] = g
			}
		}
	}
}

// concurrentRun runs from beginning to end during another run, as if there were no
// lock.
func (m *model) concurrentRun() {
	m.mu.Lock()
	o := m.options()
	m.runs--
	m.mu.Unlock()
	o.ID, o.Journals = "another", &backendtest.Journal{}
	_, _ = reaper.Run(m.ctx, o)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.within = false
}

// onLedger is the hook of the ledger. Two runs may load it at the same time.
func (m *model) onLedger(what string) error {
	err := m.call(what)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unsaved = m.unsaved || err != nil
	return err
}

// rest lets the cluster come to rest, runs twice, and checks that nothing leaks.
func (m *model) rest(t *rapid.T) {
	m.meanwhile, m.broken, m.crashAt, m.killed = nil, "", "", false
	m.nodesReturn()
	for _, pod := range m.alive {
		m.show(pod)
	}
	for range 2 {
		m.undisturbedRun(t)
		m.pass(20 * time.Minute)
	}
	m.undisturbedRun(t)
	m.check("the last run")
	if m.violation != "" {
		t.Fatal(m.violation)
	}
	for store, s := range m.stores {
		listed := make(map[string]ipam.Allocation)
		for pool, err := range s.Backend().List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range pool.Allocations {
				a.Pool = pool.Name
				listed[backendtest.Place(a)] = a
			}
		}
		for _, a := range listed {
			if why := m.whyLeaked(store, a, listed); why != "" && !m.siblingStays(store, a, listed) {
				t.Errorf("%s %s is left in the %s store: %s", a.Key, a.IP, s.Backend().Name(), why)
			}
		}
	}
}

// undisturbedRun runs without events.
func (m *model) undisturbedRun(t *rapid.T) {
	report, err := reaper.Run(t.Context(), m.options())
	if err != nil {
		t.Fatalf("a quiet run: %v", err)
	}
	m.checkReport(report, err)
}

// siblingStays reports whether a sibling of the allocation is rightly kept.
func (m *model) siblingStays(store int, a ipam.Allocation, listed map[string]ipam.Allocation) bool {
	for _, tied := range listed {
		if a.Group != "" && tied.Group == a.Group && m.whyLeaked(store, tied, listed) == "" {
			return true
		}
	}
	return false
}

// whyLeaked says why an allocation should have been released; it returns nothing if it
// should not.
func (m *model) whyLeaked(store int, a ipam.Allocation, listed map[string]ipam.Allocation) string {
	switch {
	case a.Interrupted:
		return "its release is half done"
	case a.EmptyHandle:
		return "it is a handle without an address"
	}
	pod, exists := m.alive[a.Owner.Pod.Name]
	if !exists {
		for _, other := range m.alive {
			if other.grants[store].has(a.IP) {
				return "" // it names a pod that never existed, by mistake
			}
		}
		return fmt.Sprintf("%s does not exist", a.Owner.Pod)
	}
	// A newer allocation proves that an older one leaked only if each sandbox
	// gets allocations of its own, and the status has its address.
	g, has := pod.grants[store]
	if !has || g.has(a.IP) {
		return ""
	}
	said := listed[backendtest.Place(g.got[0])].Owner.Pod == a.Owner.Pod
	switch name := m.stores[store].Backend().Name(); {
	case said && pod.shown.InStatus > 0 && (name == "handled" || name == "forgetful" && !pod.grants[withHandles].renamed):
		return fmt.Sprintf("the sandbox of %s that had it is no more", a.Owner.Pod)
	}
	return ""
}
