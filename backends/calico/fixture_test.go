package calico

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// A fixture is a fakeStore with the plugin and a backend over it.
type fixture struct {
	*ipamPlugin
	t       *testing.T
	backend *Backend
	made    int
}

func newFixture(t *testing.T, s shape) *fixture {
	p := newPlugin(newFakeStore(t, s))
	return &fixture{ipamPlugin: p, t: t, backend: p.Backend().(*Backend)}
}

// owner returns the name of a pod that does not exist, with a sandbox.
func (s *fixture) owner() ipam.Owner {
	s.made++
	pod := ipam.PodRef{Namespace: "default", Name: fmt.Sprintf("gone-%d", s.made)}
	return ipam.Owner{Pod: pod, Sandbox: sandbox(s.made), Node: "node-1"}
}

// leak allocates one address of the first block for each of n pods that do not
// exist.
func (s *fixture) leak(n int) []ipam.Allocation {
	s.t.Helper()
	var all []ipam.Allocation
	for range n {
		r, err := s.Reserve("a", s.owner())
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// warrants lists the store, records the allocations as a run does before it releases, and returns a
// warrant for each. The cluster has no pods, and the grace period of the policy is over.
func (s *fixture) warrants(rs ...ipam.Allocation) []ipam.Warrant {
	s.t.Helper()
	p, now := backendtest.Impatient(), time.Now()
	p.GracePeriod, p.Pods.Unnamed = &policy.Duration{Duration: time.Hour}, policy.Release
	inv := ipam.TakeInventory(s.t.Context(), []ipam.Backend{s.backend}, func(string) bool { return true })
	census, err := census.Take(s.t.Context(), &backendtest.Pods{}, census.Scope{})
	if err != nil {
		s.t.Fatal(err)
	}
	orphans := make(map[string]judge.Orphan)
	seen := judge.NextLedger(ledger.Ledger{}, judge.Decide(now, p, inv, census, ledger.Ledger{}, false), census, inv, now)
	for _, o := range judge.MakePlan(judge.Judge(now.Add(2*time.Hour), p, inv, census, seen)).Orphans() {
		orphans[backendtest.Place(*o.Allocation())] = o
	}
	var chosen []judge.Orphan
	var allocations []ipam.Allocation
	for _, r := range rs {
		o, ok := orphans[backendtest.Place(r)]
		if !ok {
			s.t.Fatalf("%s is no orphan", backendtest.Place(r))
		}
		chosen, allocations = append(chosen, o), append(allocations, *o.Allocation())
	}
	if _, err := s.backend.Record(s.t.Context(), allocations); err != nil {
		s.t.Fatal(err)
	}
	ws, errs := reaper.NewConfirmer(&backendtest.Pods{}, census).Confirm(s.t.Context(), chosen)
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
	return ws
}

// snapshot returns the content of the store.
func (s *fixture) snapshot() map[string]string {
	s.t.Helper()
	snapshot, err := s.Snapshot()
	if err != nil {
		s.t.Fatal(err)
	}
	return snapshot
}

// handle returns the stored value of a handle; empty if there is none.
func (s *fixture) handle(id string) string {
	o, _ := s.look(handles, id)
	return string(o.value())
}

// replace replaces strings in the stored value of an object.
func (s *fixture) replace(k kind, id string, words ...string) {
	s.t.Helper()
	o, ok := s.look(k, id)
	value := strings.NewReplacer(words...).Replace(string(o.value()))
	if !ok || value == string(o.value()) {
		s.t.Errorf("%s contains none of %s: %s", id, words, value)
	}
	s.put(k, id, value)
}

// touch writes an object as it is.
func (s *fixture) touch(k kind, id string) {
	o, _ := s.look(k, id)
	s.put(k, id, string(o.value()))
}

// before runs a function at the beginning of the first request with that prefix.
func (s *fixture) before(request string, do func()) {
	s.failing(request, func() error {
		do()
		return nil
	})
}

// failing makes the first request with that prefix fail with the error that the
// function returns.
func (s *fixture) failing(request string, why func() error) {
	var once sync.Once
	s.onRequest(func(name string) (err error) {
		if strings.HasPrefix(name, request) {
			once.Do(func() { err = why() })
		}
		return err
	})
}

// always makes every request with that prefix fail.
func (s *fixture) always(request string, err error) {
	s.onRequest(func(name string) error {
		if strings.HasPrefix(name, request) {
			return err
		}
		return nil
	})
}

// outcomes returns the backend's answers in words. An answer that wraps several
// errors has several words.
func outcomes(errs []error) string {
	var all []string
	for _, err := range errs {
		var meant []string
		for _, w := range []struct {
			err  error
			word string
		}{
			{ipam.ErrUnfinished, "unfinished"}, {ipam.ErrDeleting, "deleting"}, {ipam.ErrChanged, "changed"}, {ipam.ErrKept, "kept"},
			{ipam.ErrNoWarrant, "no-warrant"}, {ipam.ErrAgain, "again"}, {ipam.ErrPresent, "present"}, {ipam.ErrTaken, "taken"},
		} {
			if errors.Is(err, w.err) {
				meant = append(meant, w.word)
			}
		}
		switch {
		case err == nil:
			meant = []string{"gone"}
		case meant == nil:
			meant = []string{"final"}
		}
		all = append(all, strings.Join(meant, "+"))
	}
	return strings.Join(all, " ")
}
