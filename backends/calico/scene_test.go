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

// A scene is a fakeStore with the plugin, and with a backend that has listed it.
type scene struct {
	*ipamPlugin
	t       *testing.T
	backend *Backend
	made    int
}

func newScene(t *testing.T, s shape) *scene {
	p := newPlugin(newFakeStore(t, s))
	return &scene{ipamPlugin: p, t: t, backend: p.Backend().(*Backend)}
}

// owner returns a pod that does not exist, with a sandbox.
func (s *scene) owner() reaper.Owner {
	s.made++
	pod := reaper.PodRef{Namespace: "default", Name: fmt.Sprintf("gone-%d", s.made)}
	return reaper.Owner{Pod: pod, Sandbox: sandbox(s.made), Node: "node-1"}
}

// leak reserves one address for each of n pods that do not exist, in the first
// block.
func (s *scene) leak(n int) []reaper.Allocation {
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

// warrants lists what is on the fakeStore and returns a warrant for each of the
// entries: in a cluster without pods, with a policy that is patient and has waited.
func (s *scene) warrants(rs ...reaper.Allocation) []reaper.Warrant {
	s.t.Helper()
	p := backendtest.Impatient()
	p.GracePeriod, p.Pods.Unnamed = &policy.Duration{Duration: time.Hour}, policy.Release
	var notes memory
	_, err := reaper.Run(s.t.Context(), reaper.Options{
		Policy: p, Backends: []reaper.Backend{s.backend}, Cluster: &backendtest.Pods{}, Ledgers: &notes, Journals: &backendtest.Journal{},
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.t.Logf("the first look: %v", err)
	}
	inv := reaper.TakeInventory(s.t.Context(), []reaper.Backend{s.backend}, func(string) bool { return true })
	census, err := reaper.TakeCensus(s.t.Context(), &backendtest.Pods{}, reaper.Scope{})
	if err != nil {
		s.t.Fatal(err)
	}
	orphans := make(map[string]reaper.Orphan)
	for _, o := range reaper.MakePlan(reaper.Judge(time.Now().Add(2*time.Hour), p, inv, census, notes.Ledger)).Orphans() {
		orphans[backendtest.Place(o.Allocation())] = o
	}
	var chosen []reaper.Orphan
	for _, r := range rs {
		o, ok := orphans[backendtest.Place(r)]
		if !ok {
			s.t.Fatalf("%s is no orphan", backendtest.Place(r))
		}
		chosen = append(chosen, o)
	}
	ws, errs := reaper.NewConfirmer(p, &backendtest.Pods{}, census, len(chosen)).Confirm(s.t.Context(), chosen)
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
	return ws
}

// snapshot returns the content of the fakeStore.
func (s *scene) snapshot() map[string]string {
	s.t.Helper()
	snapshot, err := s.Snapshot()
	if err != nil {
		s.t.Fatal(err)
	}
	return snapshot
}

// handle returns a handle as it is stored; empty where there is none.
func (s *scene) handle(id string) string {
	o, _ := s.look(handles, id)
	return string(o.value())
}

// replace puts other words into what is stored of an object.
func (s *scene) replace(k kind, id string, words ...string) {
	s.t.Helper()
	o, ok := s.look(k, id)
	value := strings.NewReplacer(words...).Replace(string(o.value()))
	if !ok || value == string(o.value()) {
		s.t.Errorf("%s has nothing of %s: %s", id, words, value)
	}
	s.put(k, id, value)
}

// before calls something at the beginning of the first request that starts so.
func (s *scene) before(request string, do func()) {
	s.failing(request, func() error {
		do()
		return nil
	})
}

// failing has the first request that starts so fail with what the function
// returns.
func (s *scene) failing(request string, why func() error) {
	var once sync.Once
	s.onRequest(func(name string) (err error) {
		if strings.HasPrefix(name, request) {
			once.Do(func() { err = why() })
		}
		return err
	})
}

// always has every request that starts so fail.
func (s *scene) always(request string, err error) {
	s.onRequest(func(name string) error {
		if strings.HasPrefix(name, request) {
			return err
		}
		return nil
	})
}

// words are the answers of the backend, each in all the words that it has.
func words(errs []error) string {
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

// A memory is a reaper.Ledgers.
type memory struct{ reaper.Ledger }

func (m *memory) Load(context.Context) (reaper.Ledger, error) { return m.Ledger, nil }

func (m *memory) Save(_ context.Context, l reaper.Ledger) error {
	m.Ledger = l
	return nil
}
