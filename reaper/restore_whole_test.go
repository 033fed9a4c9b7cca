package reaper_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A pairHarness is a harness in which a run has released 10.0.0.2 of gone, an entry in a pool and its
// reservation.
type pairHarness struct {
	*harness
	pools, reservations *backendtest.Memory
	asked               []string // the requests of the restore
}

func newPairHarness(t *testing.T) *pairHarness {
	t.Helper()
	h := &pairHarness{pools: backendtest.NewMemory("pools"), reservations: backendtest.NewTwoStep("reservations")}
	h.harness = newHarness(h.pools.Backend(), h.reservations.Backend())
	for _, m := range []*backendtest.Memory{h.pools, h.reservations} {
		h.addPods(t, m, "live-1", "gone")
	}
	equal(t, "released", h.run(t).Summary.Released, 2)
	return h
}

// before makes do happen before a request, once.
func (h *pairHarness) before(request string, do func() error) {
	var mu sync.Mutex
	due := func(asked string) func() error {
		mu.Lock()
		defer mu.Unlock()
		h.asked = append(h.asked, asked)
		if asked != request {
			return nil
		}
		now := do
		do = nil
		return now
	}
	hook := func(store string) func(string) error {
		return func(asked string) error {
			if now := due(store + " " + asked); now != nil {
				return now()
			}
			return nil
		}
	}
	h.pools.OnRequest(hook("pools"))
	h.reservations.OnRequest(hook("reservations"))
}

// add lets another pod get an address of a store, as its ADD does.
func add(m *backendtest.Memory, name string) func() error {
	return func() error {
		_, err := m.Reserve("a", app(name))
		return err
	}
}

// Promise 1, 5, 7. A pool entry and the reservation of its address go back together or not at all, whenever
// another pod takes one of the places. What was written before the other was refused goes by the store's own
// protocol, and stays if that cannot be.
func TestAddressGoesBackAsAWholeOrNotAtAll(t *testing.T) {
	const (
		whole = "an address goes back as a whole, and not into "
		entry = whole + "pools a: its place is taken: it is now "
	)
	stall := func(h *pairHarness) error {
		h.now = h.now.Add(ipam.FreshnessNeverAdopted + time.Second)
		return nil
	}
	for _, tt := range []struct {
		name        string
		at          string // the request before which it happens; empty: before the restore, which a dry run sees
		do          func(*pairHarness) error
		reservation string // the outcome and the error of its record
		entry       string
		left        []string // the owners of the address in both stores afterwards, pools first
		writes      bool     // whether the restore puts anything back, even if only for a moment
	}{
		{"the reservation is taken", "", func(h *pairHarness) error { return add(h.reservations, "new")() },
			"taken " + whole + "pools a: its place is taken: the address is allocated", "taken its place is taken: the address is allocated to pod default/new", []string{"", "new"}, false},
		{"the entry is taken", "", func(h *pairHarness) error { return add(h.pools, "new")() },
			"taken " + entry, "taken its place is taken: it is now", []string{"new", ""}, false},
		{"the store of reservations cannot be listed", "reservations list", func(*pairHarness) error { return errForbidden },
			"failed reservations: list reservations", "failed " + whole + "reservations a/10.0.0.2: reservations: list", []string{"", ""}, false},
		{"a place cannot be read", "reservations compare a/10.0.0.2", func(h *pairHarness) error {
			h.pools.OnRequest(failing(errConnection, "compare"))
			return nil
		}, "failed " + whole + "pools a", "failed not decided", []string{"", ""}, false},
		{"the reservation is taken before the last look", "reservations compare a/10.0.0.2", func(h *pairHarness) error { return add(h.reservations, "new")() },
			"taken its place is taken: it is now", "taken " + whole + "reservations a/10.0.0.2: its place is taken", []string{"", "new"}, false},
		{"the entry is taken before the last look", "pools compare a", func(h *pairHarness) error { return add(h.pools, "new")() },
			"taken " + entry, "taken its place is taken: it is now", []string{"new", ""}, false},
		{"the reservation is taken before the first write", "reservations restore a/10.0.0.2", func(h *pairHarness) error { return add(h.reservations, "new")() },
			"taken its place is taken: it is now", "taken " + whole + "reservations a/10.0.0.2: its place is taken", []string{"", "new"}, false},
		{"the entry is taken before the first write", "reservations restore a/10.0.0.2", func(h *pairHarness) error { return add(h.pools, "new")() },
			"taken taken back: " + entry, "taken its place is taken: it is now", []string{"new", ""}, true},
		{"the entry is taken after it", "pools restore a", func(h *pairHarness) error { return add(h.pools, "new")() },
			"taken taken back: " + entry, "taken its place is taken: it is now", []string{"new", ""}, true},
		{"and the plugin removed the reservation", "pools restore a", func(h *pairHarness) error {
			return errors.Join(add(h.pools, "new")(), h.reservations.Free("a", app("gone")))
		}, "taken taken back: " + entry, "taken its place is taken: it is now", []string{"new", ""}, true},
		{"and the owner is back", "pools restore a", func(h *pairHarness) error {
			h.pods.Add(census.Pod{Ref: app("gone").Pod})
			return add(h.pools, "new")()
		}, "restored half back: " + entry, "taken its place is taken: it is now", []string{"new", "gone"}, true},
		{"and the owner comes back during the look", "pools restore a", func(h *pairHarness) error {
			h.pods.OnCall(func(call string) error {
				if strings.HasSuffix(call, " default/gone") {
					h.pods.Add(census.Pod{Ref: app("gone").Pod})
				}
				return nil
			})
			return add(h.pools, "new")()
		}, "restored half back: " + entry, "taken its place is taken: it is now", []string{"new", "gone"}, true},
		{"and the owner cannot be read", "pools restore a", func(h *pairHarness) error {
			h.pods.OnCall(func(call string) error {
				if strings.HasSuffix(call, " default/gone") {
					return errForbidden
				}
				return nil
			})
			return add(h.pools, "new")()
		}, "restored half back: " + entry, "taken its place is taken: it is now", []string{"new", "gone"}, true},
		{"and the reservation was adopted", "pools restore a", func(h *pairHarness) error {
			back := app("gone")
			h.pods.Add(census.Pod{Ref: back.Pod})
			_, err := h.reservations.Reserve("a", back)
			return errors.Join(err, add(h.pools, "new")())
		}, "restored half back: " + entry, "taken its place is taken: it is now", []string{"new", "gone"}, true},
		{"it stalls after the last look", "pools compare a", stall,
			"failed the restore stalled", "failed " + whole + "reservations a/10.0.0.2: the restore stalled", []string{"", ""}, false},
		{"it stalls during the first write", "reservations restore a/10.0.0.2", stall,
			"failed the restore stalled", "failed " + whole + "reservations a/10.0.0.2: the restore stalled", []string{"", ""}, false},
		{"it stalls after the first write", "pools restore a", stall,
			"failed taken back: " + whole + "pools a: the restore stalled", "failed the restore stalled", []string{"", ""}, true},
		{"the answer to the first write is lost, and the entry is taken", "reservations restore a/10.0.0.2", func(h *pairHarness) error {
			return errors.Join(backendtest.ErrLost, add(h.pools, "new")())
		}, "restored half back: " + entry, "taken its place is taken: it is now", []string{"new", "gone"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newPairHarness(t)
				if tt.at == "" {
					if err := tt.do(h); err != nil {
						t.Fatal(err)
					}
					dry, _ := h.restorePartly(t, func(o *reaper.RestoreOptions) { o.DryRun = true })
					h.wantPair(t, dry, tt.reservation, tt.entry)
				} else {
					h.before(tt.at, func() error { return tt.do(h) })
				}
				rep, _ := h.restorePartly(t)
				h.wantPair(t, rep, tt.reservation, tt.entry)
				h.wantLeft(t, tt.left...)
				for _, asked := range h.asked {
					if strings.HasPrefix(asked, "pools restore") && !tt.writes {
						t.Errorf("%q, although the reservation is not back", asked)
					}
				}
			})
		})
	}
}

// wantPair fails the test unless the outcomes and errors of the two records begin like this.
func (h *pairHarness) wantPair(t *testing.T, rep report.RestoreReport, reservation, entry string) {
	t.Helper()
	for n, want := range []string{entry, reservation} {
		e := rep.Entries[n]
		if got := strings.TrimSpace(e.Outcome.String() + " " + e.Error); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", e.Backend, got, want)
		}
	}
}

// wantLeft fails the test unless 10.0.0.2 has these owners in the pools and among the reservations.
func (h *pairHarness) wantLeft(t *testing.T, want ...string) {
	t.Helper()
	owner := func(content string) string {
		for _, name := range []string{"gone", "new"} {
			if strings.Contains(content, "default/"+name+" ") {
				return name
			}
		}
		return ""
	}
	got := []string{owner(contentsOf(t, h.pools)["a/2"]), owner(contentsOf(t, h.reservations)["a/10.0.0.2/10.0.0.2"])}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	for place, content := range contentsOf(t, h.reservations) {
		if strings.HasSuffix(content, "true") {
			t.Errorf("%s has a tombstone: %s", place, content)
		}
	}
}

// Promise 1, 5. Two records of one address and of two pods are of one network: the last one goes back.
func TestOneAddressOfTwoPodsGoesBackOnce(t *testing.T) {
	elsewhere := backendtest.NewMemory("elsewhere")
	h, m := memoryHarness(t, "live-1", "gone")
	h.backends = append(h.backends, elsewhere.Backend())
	h.run(t)
	first := h.journal.Read().Records
	h.addPods(t, elsewhere, "live-1", "later")
	h.run(t)
	for _, dry := range []bool{true, false} {
		rep, _ := h.restorePartly(t, func(o *reaper.RestoreOptions) {
			o.DryRun, o.Journal.Records, o.Journal.Writes = dry, append(first, o.Journal.Records[len(o.Journal.Records)-1]), []int{1, 1}
		})
		want := "restored"
		if dry {
			want = "planned"
		}
		equal(t, fmt.Sprint("outcomes of a dry run: ", dry), restoreOutcomes(rep), []string{"memory/a/2 taken", "elsewhere/a/2 " + want})
	}
	equal(t, "entries", len(contentsOf(t, m)), 1)
}

// Promise 1, 5. A pod that has got another address of the pool since gets its old one only if an earlier sandbox
// may still run, or if it is asked for.
func TestPodThatHasAnotherAddress(t *testing.T) {
	const has = "pod default/web has 10.0.0.3 by now, and this address, too"
	running := has + ", because an earlier sandbox may still run: "
	refused := "pod default/web has 10.0.0.3 by now, and no sandbox of it would take a second address: --accept-second-address puts it back all the same"
	for _, tt := range []struct {
		name   string
		store  func(string) *backendtest.Memory
		change func(*harness, *ipam.Record, *reaper.RestoreOptions)
		want   string // why it is refused, or the note
	}{
		{"its node is ready", backendtest.NewMemory, func(_ *harness, r *ipam.Record, _ *reaper.RestoreOptions) { r.Node = "n1" }, refused},
		{"the store names the node", backendtest.NewMemory, func(_ *harness, r *ipam.Record, _ *reaper.RestoreOptions) { r.Owner.Node = "n1" }, refused},
		{"its node is gone", backendtest.NewMemory, func(_ *harness, r *ipam.Record, _ *reaper.RestoreOptions) { r.Node = "n9" }, refused},
		{"it is asked for", backendtest.NewMemory, func(_ *harness, r *ipam.Record, o *reaper.RestoreOptions) {
			r.Node, o.AcceptSecondAddress = "n1", true
		}, has},
		{"its node is unreachable", backendtest.NewMemory, func(_ *harness, r *ipam.Record, _ *reaper.RestoreOptions) { r.Node = "n2" },
			running + "node n2 is not ready, or only since a short time"},
		{"its node is unknown", backendtest.NewMemory, func(*harness, *ipam.Record, *reaper.RestoreOptions) {}, running + "its node is not known"},
		{"the store has its own name for the node", backendtest.NewMemory, func(_ *harness, r *ipam.Record, _ *reaper.RestoreOptions) { r.Owner.Node = "n9" },
			running + "its node is not known"},
		{"it hung there", backendtest.NewMemory, func(_ *harness, r *ipam.Record, _ *reaper.RestoreOptions) { r.Node, r.Boot = "n1", ledger.UnknownBoot },
			running + "it may have outlived its pod on node n1"},
		{"it is on another interface", backendtest.NewMemory, func(_ *harness, r *ipam.Record, _ *reaper.RestoreOptions) {
			r.Node, r.Owner.Interface = "n1", "net2"
		}, ""},
		{"its interface is unknown", backendtest.NewMemory, func(_ *harness, r *ipam.Record, _ *reaper.RestoreOptions) {
			r.Node, r.Owner.Interface = "n1", ""
		}, refused},
		{"the pod shows the old one", backendtest.NewMemory, func(h *harness, r *ipam.Record, _ *reaper.RestoreOptions) {
			r.Node = "n1"
			h.pods.Add(showing(app("web").Pod, ip2))
		}, ""},
		{"no sandbox adopts an allocation", backendtest.NewHandled, func(_ *harness, r *ipam.Record, _ *reaper.RestoreOptions) { r.Node = "n1" }, ""},
		{"the journal has both", backendtest.NewMemory, func(_ *harness, r *ipam.Record, o *reaper.RestoreOptions) {
			r.Node = "n1"
			second := *r
			second.Key, second.IP, second.Owner.Sandbox = "3", "10.0.0.3", "later"
			o.Journal.Records = append(o.Journal.Records, second)
			o.Selection.Addresses = append(o.Selection.Addresses, ip2)
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := tt.store("memory")
			m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
			h := newHarness(m.Backend())
			h.addPods(t, m, "live-1", "web")
			h.pods.AddNodes(ready("n1"))
			equal(t, "released", h.run(t).Summary.Released, 1)
			h.pods.AddNodes(notReady("n2"))
			h.addPods(t, m, "filler")
			later := app("web")
			later.Sandbox = "later"
			if _, err := m.Reserve("a", later); err != nil {
				t.Fatal(err)
			}
			if err := m.Free("a", app("filler")); err != nil {
				t.Fatal(err)
			}
			for _, dry := range []bool{true, false} {
				rep, err := reaper.Restore(t.Context(), h.restoreOptions(func(o *reaper.RestoreOptions) {
					o.DryRun = dry
					tt.change(h, &o.Journal.Records[0], o)
				}))
				e := rep.Entries[0]
				equal(t, "error and note", e.Error+e.Note, tt.want)
				equal(t, "refused", err != nil, tt.want == refused)
				want := map[bool]report.Fate{true: report.Restorable, false: report.Restored}[dry]
				if tt.want == refused {
					want = report.NotRestored
				}
				equal(t, fmt.Sprint("outcome of a dry run: ", dry), e.Outcome, want)
			}
		})
	}
}

// Promise 1, 7. At its end, a restore takes back its marks on what it certainly did not write, and no others.
func TestMarksOfWhatWasNotWrittenGo(t *testing.T) {
	for _, tt := range []struct {
		name    string
		request string // at which it happens
		err     error  // of the request
		taken   bool   // another pod takes the place
		earlier bool   // an earlier restore put it back
		marked  bool   // afterwards
	}{
		{"it is back", "", nil, false, false, true},
		{"its place was taken before the last look", "compare a", nil, true, false, false},
		{"its place was taken before the write", "restore a", nil, true, false, false},
		{"it cannot be read", "compare a", errForbidden, false, false, false},
		{"the answer to the write is lost", "restore a", backendtest.ErrLost, false, false, true},
		{"the answer to the write is lost, and its place is taken", "restore a", backendtest.ErrLost, true, false, true},
		{"an earlier restore put it back, and it cannot be read", "compare a", errForbidden, false, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, m := memoryHarness(t, "live-1", "gone")
			equal(t, "released", h.run(t).Summary.Released, 1)
			record := h.journal.Read().Records[0]
			a := &ipam.Allocation{Backend: record.Backend, Pool: record.Pool, Key: record.Key, Owner: ipam.Owner{Sandbox: record.Owner.Sandbox}}
			at := noon
			if tt.earlier {
				h.restore(t, h.remembered)
				h.now = h.now.Add(time.Minute)
				at = h.now
			}
			wasMarked := false
			m.OnRequest(func(request string) error {
				if request != tt.request {
					return nil
				}
				wasMarked = h.restoredAt(t, a).Equal(at)
				if tt.taken {
					_ = m.Free("a", app("gone"))
					_, _ = m.Reserve("a", app("new"))
				}
				return tt.err
			})
			_, _ = reaper.Restore(t.Context(), h.restoreOptions(h.remembered))
			equal(t, "marked before it was asked for", wasMarked, tt.request != "")
			equal(t, "marked", !h.restoredAt(t, a).IsZero(), tt.marked)
		})
	}
}

// restoredAt returns when a restore put an allocation back, as the ledger has it.
func (h *harness) restoredAt(t *testing.T, a *ipam.Allocation) time.Time {
	t.Helper()
	l, err := ledger.Decode(h.ledgers.stored)
	if err != nil {
		t.Fatal(err)
	}
	return l.RestoredAt(a)
}

// Promise 7. The mark of a restore has the API server's time. A clock that differs is a warning.
func TestRestoreIsMarkedByTheServersClock(t *testing.T) {
	for _, tt := range []struct {
		name     string
		skew     time.Duration
		known    bool
		marked   time.Time
		warnings []string
	}{
		{"the clock is right", 0, true, noon, nil},
		{"it is behind", -3 * time.Hour, true, noon.Add(3 * time.Hour),
			[]string{"the clock here is 3h0m0s behind the API server's: what is put back is held by the API server's time"}},
		{"it is ahead", time.Hour, true, noon.Add(-time.Hour),
			[]string{"the clock here is 1h0m0s ahead of the API server's: what is put back is held by the API server's time"}},
		{"nothing is known", 3 * time.Hour, false, noon, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := memoryHarness(t, "live-1", "gone")
			h.run(t)
			record := h.journal.Read().Records[0]
			rep := h.restore(t, h.remembered, func(o *reaper.RestoreOptions) {
				o.ClockSkew = func() (time.Duration, bool) { return tt.skew, tt.known }
			})
			a := &ipam.Allocation{Backend: record.Backend, Pool: record.Pool, Key: record.Key, Owner: ipam.Owner{Sandbox: record.Owner.Sandbox}}
			equal(t, "marked", h.restoredAt(t, a), tt.marked)
			equal(t, "warnings", rep.Warnings, tt.warnings)
		})
	}
}
