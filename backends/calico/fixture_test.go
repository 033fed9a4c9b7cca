package calico

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
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
func (s *fixture) owner() reaper.Owner {
	s.made++
	pod := reaper.PodRef{Namespace: "default", Name: fmt.Sprintf("gone-%d", s.made)}
	return reaper.Owner{Pod: pod, Sandbox: sandbox(s.made), Node: "node-1"}
}

// leak allocates one address of the first block for each of n pods that do not
// exist.
func (s *fixture) leak(n int) []reaper.Allocation {
	s.t.Helper()
	var all []reaper.Allocation
	for range n {
		r, err := s.Reserve("a", s.owner())
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// warrants lists the store, records the allocations as a run does before it releases,
// and returns a warrant for each of them. The
// cluster has no pods, and the grace period of the policy is over.
func (s *fixture) warrants(rs ...reaper.Allocation) []reaper.Warrant {
	s.t.Helper()
	p := backendtest.Impatient()
	p.GracePeriod, p.Pods.Unnamed = &policy.Duration{Duration: time.Hour}, policy.Release
	var ledgers fakeLedgers
	_, err := reaper.Run(s.t.Context(), reaper.Options{
		Policy: p, Backends: []reaper.Backend{s.backend}, Cluster: &backendtest.Pods{}, Ledgers: &ledgers, Journals: &backendtest.Journal{},
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.t.Logf("the run that starts the grace period: %v", err)
	}
	inv := reaper.TakeInventory(s.t.Context(), []reaper.Backend{s.backend}, func(string) bool { return true })
	census, err := reaper.TakeCensus(s.t.Context(), &backendtest.Pods{}, reaper.Scope{})
	if err != nil {
		s.t.Fatal(err)
	}
	orphans := make(map[string]reaper.Orphan)
	for _, o := range reaper.MakePlan(reaper.Judge(time.Now().Add(2*time.Hour), p, inv, census, ledgers.Ledger)).Orphans() {
		orphans[backendtest.Place(o.Allocation())] = o
	}
	var chosen []reaper.Orphan
	var allocations []reaper.Allocation
	for _, r := range rs {
		o, ok := orphans[backendtest.Place(r)]
		if !ok {
			s.t.Fatalf("%s is no orphan", backendtest.Place(r))
		}
		chosen, allocations = append(chosen, o), append(allocations, o.Allocation())
	}
	if _, err := s.backend.Record(s.t.Context(), allocations); err != nil {
		s.t.Fatal(err)
	}
	ws, errs := reaper.NewConfirmer(&backendtest.Pods{}, census, len(chosen)).Confirm(s.t.Context(), chosen)
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
			{reaper.ErrUnfinished, "unfinished"}, {reaper.ErrChanged, "changed"}, {reaper.ErrKept, "kept"},
			{reaper.ErrNoWarrant, "no-warrant"}, {reaper.ErrAgain, "again"},
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

// fakeLedgers is a reaper.Ledgers in memory.
type fakeLedgers struct{ reaper.Ledger }

func (m *fakeLedgers) Load(context.Context) (reaper.Ledger, error) { return m.Ledger, nil }

func (*fakeLedgers) Capacity() int { return 1 << 20 }

func (m *fakeLedgers) Save(_ context.Context, l reaper.Ledger) error {
	m.Ledger = l
	return nil
}
