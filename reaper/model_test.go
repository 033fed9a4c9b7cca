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
)

// Promise 1, 8, 10. Whatever happens before, between, during and in place of the
// calls of a run, another run included, no address of an existing pod is released,
// and nothing that is not written down; and when it is over, runs leave nothing of
// the dead.
func TestNoAddressOfAnExistingPodIsEverReleased(t *testing.T) {
	// A hundred sequences, as rapid has it, would miss what is rare.
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			// The bubble's T must not be asked for a deadline.
			rapid.Check(struct{ testing.TB }{t}, someDaysOfACluster)
		})
	}
}

// someDaysOfACluster lets things happen and runs, several times, and looks what
// is left in the end.
func someDaysOfACluster(t *rapid.T) {
	m := newModelled()
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
		m.happen(t)
		m.runOnce(t)
		if m.harm != "" {
			t.Fatal(m.harm)
		}
	}
	m.quiet(t)
}

// outage leaves so many addresses behind that owners are looked at in bulk.
func (m *modelled) outage() {
	for n := range 60 {
		_, _ = m.stores[0].Reserve("a", app(fmt.Sprintf("lost-%d", n)))
	}
}

// happen lets things happen between runs, and time pass.
func (m *modelled) happen(t *rapid.T) {
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
func (m *modelled) pass(d time.Duration) {
	m.now = m.now.Add(d)
	for _, pod := range m.alive {
		if !pod.pending.IsZero() && !m.now.Before(pod.pending.Add(inFlight)) {
			m.show(pod)
		}
	}
}

// runOnce runs while other things happen, and may kill the run.
func (m *modelled) runOnce(t *rapid.T) {
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
	m.ended(reaper.Run(ctx, m.options()))
	m.check("the run")
}

// runID is that of the current run.
func (m *modelled) runID() string { return fmt.Sprint("run-", m.runs) }

// ended looks at the report of a run that has ended: what it released is in its
// journal, Promise 10; and what it remembers of nodes is from now on kept.
func (m *modelled) ended(r reaper.Report, err error) {
	journal := m.journal.Read()
	for _, e := range r.Entries {
		written := slices.ContainsFunc(journal.Records, func(rec reaper.Record) bool {
			return rec.Backend == e.Backend && rec.Pool == e.Pool && rec.Key == e.Key && rec.Owner == e.Owner
		})
		if e.Outcome == reaper.Released && (!written || journal.Run.ID != m.runID()) {
			m.harmed(fmt.Sprintf("%s released %s of %s, which its journal does not have", m.runID(), e.Key, e.Owner.Pod))
		}
		partial := (*reaper.PartialError)(nil)
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

// another is a run from beginning to end in the midst of the first one, which no
// lock kept away.
func (m *modelled) another() {
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

// remembering is the hook of the ledger.
func (m *modelled) remembering(what string) error {
	err := m.call(what)
	m.unsaved = m.unsaved || err != nil
	return err
}

// quiet lets the cluster come to rest, runs twice, and looks what is left.
func (m *modelled) quiet(t *rapid.T) {
	m.meanwhile, m.broken, m.crashAt, m.killed = nil, "", "", false
	m.back()
	for _, pod := range m.alive {
		m.show(pod)
	}
	for range 2 {
		m.quietRun(t)
		m.pass(20 * time.Minute)
	}
	m.quietRun(t)
	m.check("the last run")
	if m.harm != "" {
		t.Fatal(m.harm)
	}
	for store, s := range m.stores {
		listed := make(map[string]reaper.Allocation)
		for u, err := range s.Backend().List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range u.Allocations {
				r.Pool = u.Name
				listed[backendtest.Place(r)] = r
			}
		}
		for _, r := range listed {
			if why := m.emptyHandle(store, r, listed); why != "" && !m.boundToKept(store, r, listed) {
				t.Errorf("%s %s is left in the %s store: %s", r.Key, r.IP, s.Backend().Name(), why)
			}
		}
	}
}

// quietRun runs while nothing else happens.
func (m *modelled) quietRun(t *rapid.T) {
	report, err := reaper.Run(t.Context(), m.options())
	if err != nil {
		t.Fatalf("a quiet run: %v", err)
	}
	m.ended(report, err)
}

// boundToKept reports whether the entry is bound to one that stays.
func (m *modelled) boundToKept(store int, r reaper.Allocation, listed map[string]reaper.Allocation) bool {
	for _, tied := range listed {
		if r.Group != "" && tied.Group == r.Group && m.emptyHandle(store, tied, listed) == "" {
			return true
		}
	}
	return false
}

// empty handle says why an entry should not be there any more.
func (m *modelled) emptyHandle(store int, r reaper.Allocation, listed map[string]reaper.Allocation) string {
	switch {
	case r.Interrupted:
		return "its release is half done"
	case r.EmptyHandle:
		return "it is a handle without an address"
	}
	pod, exists := m.alive[r.Owner.Pod.Name]
	if !exists {
		for _, other := range m.alive {
			if other.grants[store].has(r.IP) {
				return "" // it names nobody by mistake
			}
		}
		return fmt.Sprintf("%s does not exist", r.Owner.Pod)
	}
	// Only where sandboxes get addresses of their own does a newer entry prove
	// that an older one is left over.
	g, has := pod.grants[store]
	if !has || g.has(r.IP) {
		return ""
	}
	said := listed[backendtest.Place(g.got[0])].Owner.Pod == r.Owner.Pod
	switch name := m.stores[store].Backend().Name(); {
	case name == "handled", name == "forgetful" && said:
		return fmt.Sprintf("the sandbox of %s that had it is no more", r.Owner.Pod)
	}
	return ""
}
