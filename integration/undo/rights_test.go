package undo_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/rights"
)

// plain is releaseNow without allocations of others, whose resources the shipped
// roles cannot know.
var plain, _, _ = strings.Cut(releaseAll+"gracePeriod: 0s\n", "backends:")

// install makes the scene's processes those of a service account with the rights.
func (s *scene) install(g rights.Grant) *rights.Account {
	s.Helper()
	a, err := rights.Install(s.Context(), s.Cluster, g)
	s.must(err)
	t := s.T // which a subtest may replace
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := a.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	s.kubeconfig, err = s.Cluster.KubeconfigFor(s.proxy.Config(a.Config))
	s.must(err)
	return a
}

// allBackends are those that have a role of their own.
var allBackends = []string{"whereabouts", "overlapping", "calico"}

// A service account with exactly the roles that are shipped restores; without
// one verb of the role that is for restoration alone it does not, so that none of them is
// too many.
func TestShippedRolesSufficeForARestorationAndNoVerbIsTooMany(t *testing.T) {
	w := newWorld(t, calico.KubernetesT(t))
	w.run(plain)
	w.end = w.stores()
	id := w.journals()[0]
	g, err := rights.Restoring(allBackends...)
	w.must(err)
	g = g.Split()
	a := w.install(g)
	restore := func() int {
		w.put(w.end)
		w.unlock()
		result, err := w.start("restore", plain, "--run="+id).Wait()
		w.must(err)
		w.wantInUse()
		return result.ExitCode
	}
	if code := restore(); code != reap.ExitDone {
		t.Fatalf("with the roles as shipped: exit code %d", code)
	}
	w.wantStores("after the restoration", w.before)
	tried := 0
	for _, v := range g.Verbs() {
		if v.Role(g) != "ip-reaper-restore" {
			continue
		}
		tried++
		t.Run("without "+v.Of(g), func(t *testing.T) {
			w.T = t
			w.must(a.Lose(t.Context(), g, v))
			if code := restore(); code != reap.ExitPartial {
				t.Errorf("exit code %d, want %d", code, reap.ExitPartial)
			}
		})
	}
	if tried != 2 {
		t.Errorf("the role gives %d verbs, want 2", tried)
	}
}

// A run that may not write its journal releases nothing, though it could (promise 10).
func TestWithoutAJournalNothingIsReleased(t *testing.T) {
	w := newWorld(t, calico.KubernetesT(t))
	g, err := rights.Shipped(rights.Release, allBackends...)
	w.must(err)
	g = g.Split()
	for _, v := range g.Verbs() {
		if v.Of(g) == "create configmaps" {
			g = g.Without(v)
		}
	}
	w.install(g)
	w.unlock()
	r := w.wait(w.start("run", plain), reap.ExitPartial).Report
	if s := r.Summary; s.Released != 0 || s.Failed == 0 || len(r.Warnings) == 0 {
		t.Errorf("%+v with warnings %q", s, r.Warnings)
	}
	for _, e := range r.Entries {
		if e.Outcome == "failed" && !strings.Contains(e.Error, "it is not in the journal") {
			t.Errorf("%s failed: %s", e.Key, e.Error)
		}
	}
	w.wantStores("without a journal", w.before)
	if got := w.journals(); len(got) > 0 {
		t.Errorf("there are journals of %q", got)
	}
}
