package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// An outsideStore is a store outside the API server.
type outsideStore struct {
	ipam.Backend
	id string
}

func (s *outsideStore) Locate() ipam.Store {
	return ipam.Store{Outside: true, ID: s.id, Field: "its GUID"}
}

// insideStore returns an empty store inside the API server, with other ranges.
func insideStore() *backendtest.Memory {
	m := backendtest.NewMemory("inside")
	_, _ = m.Reserve("skipped", app("dns"))
	_ = m.Free("skipped", app("dns"))
	return m
}

// dueIn returns the outcomes of what is due in a store: each once.
func dueIn(rep report.Report, store string) []report.Fate {
	var all []report.Fate
	for _, e := range rep.Entries {
		if e.Backend == store && e.Verdict == judge.Orphaned {
			all = append(all, e.Outcome)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// outsideHarness returns a harness with a store outside the API server, whose GUID is A, and one
// inside.
func outsideHarness(t *testing.T) (*harness, *outsideStore) {
	t.Helper()
	m, inside := backendtest.NewMemory("outside"), insideStore()
	s := &outsideStore{Backend: m.Backend(), id: "A"}
	h := newHarness(s, inside.Backend())
	h.policy.Limits.MaxFraction = new(1.0)
	h.addPods(t, m, "live-1", "gone-1")
	h.addPods(t, inside, "live-2", "gone-2")
	return h, s
}

// Promise 1. A run ends before it writes to any store if one that may be of another cluster is
// not that of earlier runs. A dry run says the same.
func TestAnotherStoreIsRefused(t *testing.T) {
	accept := func(o *reaper.Options) { o.AcceptNewStore = true }
	const a, b = `{"outside":"A"}`, `{"outside":"B"}`
	refused := func(id string) string {
		return fmt.Sprintf("another store: outside: its GUID is %q, and was \"A\" in earlier runs; nothing was released", id)
	}
	for _, tt := range []struct {
		name        string
		known, find string
		change      func(*reaper.Options)
		want        string // the error; empty if it released
		remembers   string
	}{
		{"the first run", "", "A", nil, "", a},
		{"the same", "A", "A", nil, "", a},
		{"another one", "A", "B", nil, refused("B"), a},
		{"one without a GUID", "A", "", nil, refused(""), a},
		{"another one is accepted", "A", "B", accept, "", b},
		{"one without a GUID is accepted", "A", "", accept, "", ""},
		{"none had a GUID", "", "", nil, "", ""},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dry run: %v", tt.name, dry), func(t *testing.T) {
				h, s := outsideHarness(t)
				s.id = tt.find
				if tt.known != "" {
					h.ledgers.put(t, `{"seen":{},"stores":{"outside":"`+tt.known+`"}}`)
				}
				h.policy.DryRun = &dry
				h.change = tt.change
				h.also(func(o *reaper.Options) { o.Remember = dry })
				rep, err := reaper.Run(t.Context(), h.options())
				outcome := map[bool]report.Fate{false: report.Released, true: report.Planned}[dry]
				if tt.want != "" {
					outcome = report.Refused
					equal(t, "another store", errors.Is(err, reaper.ErrAnotherStore), true)
					equal(t, "a mistake", errors.As(err, new(*ipam.InputError)), true)
					equal(t, "error", err.Error(), tt.want)
					equal(t, "refusals", len(rep.Result.Refused), 1)
					equal(t, "the end in the ledger", h.ledgers.runs(t)[0].Error, tt.want)
				} else if err != nil {
					t.Fatal(err)
				}
				equal(t, "outside", dueIn(rep, "outside"), []report.Fate{outcome})
				equal(t, "inside", dueIn(rep, "inside"), []report.Fate{outcome})
				l, err := ledger.Decode(h.ledgers.stored)
				equal(t, "error", err, nil)
				var want map[string]string
				switch tt.remembers {
				case a:
					want = map[string]string{"outside": "A"}
				case b:
					want = map[string]string{"outside": "B"}
				}
				equal(t, "remembered", l.Stores, want)
			})
		}
	}
}

// Promise 1. Another store makes the ledger forget nothing: neither where pods hang in the first
// one, nor since when it leaks. It may be empty.
func TestAnotherStoreLeavesTheLedgerAsItIs(t *testing.T) {
	h, s := outsideHarness(t)
	h.policy.GracePeriod = policy.Default().GracePeriod
	h.run(t)
	before := h.ledgers.text(t)
	s.Backend, s.id = backendtest.NewMemory("outside").Backend(), "B"
	_, err := reaper.Run(t.Context(), h.options())
	equal(t, "another store", errors.Is(err, reaper.ErrAnotherStore), true)
	equal(t, "ledger", h.ledgers.text(t), before)
}

// Promise 1. Beside this run, another one remembered its store first.
func TestStoreOfARunBesideIsNotReplaced(t *testing.T) {
	h, _ := outsideHarness(t)
	h.ledgers.onSave = func() error {
		h.ledgers.onSave = nil
		h.ledgers.stored = ledgerOfText(t, `{"seen":{},"stores":{"outside":"B"}}`).Encode()
		return fmt.Errorf("another client wrote it: %w", ipam.ErrAgain)
	}
	rep, err := reaper.Run(t.Context(), h.options())
	equal(t, "another store", errors.Is(err, reaper.ErrAnotherStore), true)
	equal(t, "released", rep.Summary.Released, 0)
	equal(t, "ledger", h.ledgers.text(t), `{"seen":{},"stores":{"outside":"B"}}`)
	equal(t, "ended", h.ledgers.runs(t)[0].Ended, true)
}

// Promise 1. Each round looks at the store, also those of a dry run that remembers nothing.
func TestAnotherStoreInALaterRound(t *testing.T) {
	for _, dry := range []bool{false, true} {
		h, s := outsideHarness(t)
		h.policy.GracePeriod, h.policy.DryRun = policy.Default().GracePeriod, &dry
		h.also(func(o *reaper.Options) {
			o.Sleep = func(_ context.Context, d time.Duration) error {
				h.now, s.id = h.now.Add(d), "B"
				return nil
			}
		})
		rep, err := reaper.Run(t.Context(), h.options())
		equal(t, "another store", errors.Is(err, reaper.ErrAnotherStore), true)
		equal(t, "due", dueIn(rep, "inside"), []report.Fate{report.Refused})
	}
}

// Promise 1. The fraction of all stores does not hide that most of one is due that may be of
// another cluster.
func TestMaxFractionHoldsForAStoreOutsideByItself(t *testing.T) {
	for _, tt := range []struct {
		name              string
		outside           bool
		due, live, inside int
		brief             bool
		want              string // empty if the plan is allowed
	}{
		{"most of it", true, 15, 10, 100, false, "limits.maxFraction: the plan would release 15 of 25 allocations of outside, more than the allowed 50 %"},
		{"most of it, in a brief report", true, 15, 10, 100, true, "limits.maxFraction: the plan would release 15 of 25 allocations of outside, more than the allowed 50 %"},
		{"half of it", true, 15, 15, 100, true, ""},
		{"most of few", true, 10, 9, 100, false, ""},
		{"most of one inside", false, 15, 10, 100, false, ""},
		{"most of all", true, 15, 10, 1, false, "limits.maxFraction: the plan would release 15 of 26 allocations, more than the allowed 50 %"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, inside := backendtest.NewMemory("outside"), insideStore()
			h := newHarness(m.Backend(), inside.Backend())
			if tt.outside {
				h.backends[0] = &outsideStore{Backend: m.Backend(), id: "A"}
			}
			for i := range tt.due {
				h.addPods(t, m, fmt.Sprint("gone-", i))
			}
			for i := range tt.live {
				h.addPods(t, m, fmt.Sprint("live-", i))
			}
			for i := range tt.inside {
				h.addPods(t, inside, fmt.Sprint("live-in-", i))
			}
			h.policy.Limits = policy.Default().Limits
			h.change = func(o *reaper.Options) { o.Brief = tt.brief }
			rep, err := reaper.Run(t.Context(), h.options())
			if tt.want == "" {
				equal(t, "error", err, nil)
				equal(t, "released", rep.Summary.Released, tt.due)
				return
			}
			equal(t, "refusals", messages(limitError(t, err).Refusals), tt.want)
		})
	}
}

// Promise 4. While a store may be that of another cluster, no grace period elapses.
func TestGracePeriodBeginsAgainWhenAPodOfTheStoreIsSeen(t *testing.T) {
	m := backendtest.NewMemory("outside")
	h := newHarness(&outsideStore{Backend: m.Backend(), id: "A"})
	h.policy.GracePeriod, h.policy.Limits.MaxFraction = policy.Default().GracePeriod, new(1.0)
	h.pods.Add(census.Pod{Ref: web})
	for i := range 20 {
		h.addPods(t, m, fmt.Sprint("gone-", i))
	}
	a := h.addPods(t, m, "live-1")[0]
	equal(t, "suspected", h.run(t).Summary.Suspected, 20)
	h.pods.Remove(a.Owner.Pod)
	h.now = h.now.Add(time.Hour)
	equal(t, "held", h.run(t).Summary.Held, 21)
	h.pods.Add(showing(a.Owner.Pod, a.IP))
	equal(t, "suspected again", h.run(t).Summary.Suspected, 20)
	h.now = h.now.Add(time.Hour)
	equal(t, "released", h.run(t).Summary.Released, 20)
}
