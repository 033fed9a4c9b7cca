package reaper_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 1. A store that could not be listed in one run loses neither the nodes nor the
// times of its allocations.
func TestStoreThatWasNotListedLosesNoMemory(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(*testing.T, *harness, *backendtest.Memory)
	}{
		{"it failed", func(t *testing.T, h *harness, m *backendtest.Memory) {
			m.OnRequest(func(string) error { return errConnection })
			h.partial(t)
			m.OnRequest(nil)
		}},
		{"the policy disabled it", func(t *testing.T, h *harness, _ *backendtest.Memory) {
			h.policy.Backends = map[string]policy.Backend{"memory": {Enabled: policy.Off}}
			h.run(t)
			h.policy.Backends = nil
		}},
		{"it was absent", func(t *testing.T, h *harness, m *backendtest.Memory) {
			m.OnRequest(func(string) error { return ipam.ErrNotInstalled })
			h.run(t)
			m.OnRequest(nil)
		}},
		{"the program did not have it", func(t *testing.T, h *harness, _ *backendtest.Memory) {
			all := h.backends
			h.backends = all[1:]
			h.run(t)
			h.backends = all
		}},
		{"a part of it failed", func(t *testing.T, h *harness, _ *backendtest.Memory) {
			all := h.backends
			broken := scriptedStore{name: "memory", steps: []step{{err: &ipam.PoolError{Pool: "a", Err: errConnection}}}}
			h.backends = []ipam.Backend{broken, all[1]}
			h.partial(t)
			h.backends = all
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, second := backendtest.NewMemory("memory"), backendtest.NewMemory("second")
			h := newHarness(m.Backend(), second.Backend())
			h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
			as := h.addPods(t, m, "live-1", "web", "gone-1")
			h.pods.Add(podOn("n1", "web", as[1]))
			h.pods.AddNodes(ready("n1"), ready("n2"))
			h.run(t)
			h.now = noon.Add(30 * time.Minute)
			tt.run(t, h, m)
			h.pods.Remove(app("web").Pod)
			h.pods.AddNodes(notReady("n1"))
			h.policy.Nodes.Unknown = policy.Release
			h.now = noon.Add(time.Hour)
			rep := h.run(t)
			equal(t, "verdict by the node", reported(t, rep, "2"), unreachable)
			equal(t, "outcome by the time", outcomes(rep)["3"], report.Released)
			equal(t, "released", rep.Summary.Released, 1)
		})
	}
}

// A dry run that remembers writes the ledger and nothing else. Its report says what is
// due, and the next run that releases knows the times and the nodes.
func TestDryRunThatRemembers(t *testing.T) {
	h, m := waitingHarness(t)
	before := contentsOf(t, m)
	plain := h.policy
	h.policy.DryRun = new(true)
	h.run(t)
	equal(t, "writes of a dry run that does not remember", h.ledgers.saves, 0)

	h.change = func(o *reaper.Options) { o.Remember = true }
	equal(t, "suspected", h.run(t).Summary.Suspected, 2)
	h.now = noon.Add(15 * time.Minute)
	equal(t, "planned", h.run(t).Summary.Planned, 2)
	equal(t, "store", contentsOf(t, m), before)
	equal(t, "journal", len(h.journal.Read().Records), 0)

	h.policy = plain
	equal(t, "released by the next run", h.run(t).Summary.Released, 2)
}

// Promise 2. A dry run does not remember times from a wrong clock, nor over a ledger that it
// could not read.
func TestDryRunDoesNotRememberWhatIsDoubtful(t *testing.T) {
	for name, change := range map[string]func(*harness, *reaper.Options){
		"the clock is wrong": func(_ *harness, o *reaper.Options) {
			o.ClockSkew = func() (time.Duration, bool) { return time.Hour, true }
		},
		"the ledger cannot be read": func(h *harness, _ *reaper.Options) {
			h.ledgers.onLoad = func() error { return errForbidden }
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := waitingHarness(t)
			h.policy.DryRun = new(true)
			h.change = func(o *reaper.Options) {
				o.Remember = true
				change(h, o)
			}
			_, _ = reaper.Run(t.Context(), h.options())
			if text := h.ledgers.text(t); text != "" {
				equal(t, "ledger", text, `{"seen":{}}`)
			}
		})
	}
}
