package reaper_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// ignoreRecords leaves out what is no part of a report.
var ignoreRecords = cmpopts.IgnoreUnexported(reaper.RestoreReport{})

// A dam is a store that notes what is put back into it, and answers with that.
type dam struct {
	fixedStore
	answer error
	calls  *int
}

func (d dam) Restore(_ context.Context, _ string, rs []reaper.Record) []error {
	*d.calls++
	return slices.Repeat([]error{d.answer}, len(rs))
}

// undoOver restores the record of web's entry, 10.0.0.1 in pool "pool" of the store
// "fixed", over a store that has these pools by now.
func undoOver(t *testing.T, pods []reaper.Pod, pools ...reaper.Pool) (entry reaper.RestoreEntry, written bool) {
	t.Helper()
	calls := 0
	w := newWorld(dam{fixedStore: pools, calls: &calls})
	w.pods.Add(pods...)
	report, _ := reaper.Restore(t.Context(), w.undoing(func(o *reaper.RestoreOptions) {
		o.Journal.Records = []reaper.Record{{
			Backend: "fixed", Pool: "pool", Key: "1", IP: "10.0.0.1", Stored: []byte(`"t1"`),
			Owner: reaper.EntryOwner{Namespace: "default", Pod: "web", Sandbox: "s1", Interface: "net1"},
		}}
	}))
	return report.Entries[0], calls > 0
}

// Promise 1, 2. An address that somebody has by now is not given to its old owner,
// however free its place is.
func TestAddressThatSomebodyHasByNowIsNotPutBack(t *testing.T) {
	entry := func(change func(*reaper.Allocation)) reaper.Allocation {
		r := webEntry()
		change(&r)
		return r
	}
	others := entry(func(r *reaper.Allocation) { r.Owner.Pod = other })
	in := func(name, network string, rs ...reaper.Allocation) reaper.Pool {
		return reaper.Pool{Name: name, Network: network, Allocations: rs}
	}
	empty := in("pool", "blue")
	for _, tt := range []struct {
		name  string
		pods  []reaper.Pod
		pools []reaper.Pool
		taken string // why it is not put back, if it is not empty
	}{
		{"nobody has it", nil, []reaper.Pool{empty}, ""},
		{"its pool is gone", nil, nil, ""},
		{"its pod shows it", []reaper.Pod{showing(web, ip1)}, []reaper.Pool{empty}, ""},
		{"another pod shows it", []reaper.Pod{showing(other, ip1)}, []reaper.Pool{empty}, "pod default/other shows the address"},
		{"another pod that is finished shows it", []reaper.Pod{finished(showing(other, ip1))}, []reaper.Pool{empty}, "pod default/other shows the address"},
		{"its pod and another one show it", []reaper.Pod{showing(other, ip1), showing(web, ip1)}, []reaper.Pool{empty}, "pod default/other shows the address"},
		{"another pod shows it, and has it in another network", []reaper.Pod{showing(other, ip1)},
			[]reaper.Pool{empty, in("there", "red", others)}, ""},
		{"another pod shows it, and nobody knows in which network", []reaper.Pod{showing(other, ip1)},
			[]reaper.Pool{empty, in("there", "", others)}, "pod default/other shows the address"},
		{"another entry of the network has it", nil, []reaper.Pool{empty, in("there", "blue", others)}, "fixed there has the address for pod default/other"},
		{"an entry of another network has it", nil, []reaper.Pool{empty, in("there", "red", others)}, ""},
		{"an entry of some network has it", nil, []reaper.Pool{empty, in("there", "", others)}, "fixed there has the address for pod default/other"},
		{"an entry of a network has it, and nobody knows which its own is", nil, []reaper.Pool{in("there", "red", others)},
			"fixed there has the address for pod default/other"},
		{"another entry is for the same pod", nil, []reaper.Pool{empty, in("there", "blue", webEntry())}, ""},
		{"another entry cannot be read", nil, []reaper.Pool{empty, in("there", "blue", entry(func(r *reaper.Allocation) { r.Unreadable = "no JSON" }))},
			"fixed there has the address for pod default/web"},
		{"another entry is a tunnel's", nil, []reaper.Pool{empty, in("there", "blue", entry(func(r *reaper.Allocation) {
			r.Foreign, r.Owner = "a tunnel", reaper.Owner{}
		}))}, "fixed there has the address for an owner without a name"},
		{"another entry names a sandbox only", nil, []reaper.Pool{empty, in("there", "blue", entry(func(r *reaper.Allocation) {
			r.Owner.Pod = reaper.PodRef{}
		}))}, "fixed there has the address for sandbox s1"},
		{"its own entry is there, as another pod's", nil, []reaper.Pool{in("pool", "blue", others)}, ""}, // the store knows better
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, written := undoOver(t, tt.pods, tt.pools...)
			equal(t, "written", written, tt.taken == "")
			want := reaper.RestoreEntry{Outcome: reaper.Restored}
			if tt.taken != "" {
				want = reaper.RestoreEntry{Outcome: reaper.Taken, Error: "its place is taken: " + tt.taken}
			}
			equal(t, "outcome", reaper.RestoreEntry{Outcome: got.Outcome, Error: got.Error}, want)
		})
	}
}

// Promise 1. Pools and the allocations that rest on them are two stores, of the
// same networks.
func TestAddressThatAnotherStoreGaveInItsNetworkIsNotPutBack(t *testing.T) {
	there := poolOf(webEntry())
	there.Allocations[0].Owner.Pod = other
	for network, want := range map[string]reaper.RestoreOutcome{"blue": reaper.Taken, "red": reaper.Restored, "": reaper.Restored} {
		calls := 0
		w := newWorld(dam{fixedStore{reaper.Pool{Name: "pool", Network: "blue"}}, nil, &calls})
		there.Network = network
		w.backends = append(w.backends, script{"second", []step{{pool: there}}})
		report, _ := reaper.Restore(t.Context(), w.undoing(func(o *reaper.RestoreOptions) {
			o.Journal.Records = []reaper.Record{{Backend: "fixed", Pool: "pool", Key: "1", IP: "10.0.0.1"}}
		}))
		equal(t, "outcome where the other store has it in "+network, report.Entries[0].Outcome, want)
	}
}

// Promise 2, 7, 9.
func TestRecordThatCannotBePutBackSpoilsNoOther(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*ruin)
		want   reaper.RestoreOutcome // of both records of the first store
		why    string
	}{
		{"the store cannot be listed", func(r *ruin) {
			r.one.OnRequest(func(string) error { return errConnection })
		}, reaper.NotRestored, "one: list one: not decided: " + errConnection.Error()},
		{"the store is not there", func(r *ruin) {
			r.backends[0] = script{"one", []step{{err: reaper.ErrNotInstalled}}}
		}, reaper.NotRestored, "one: the store is not installed in this cluster"},
		{"this program has no such store", func(r *ruin) { r.backends = r.backends[1:] }, reaper.NotRestored, `the program has no backend "one"`},
		{"the store cannot put back", func(r *ruin) { r.backends[0] = unrecorded{r.one.Backend()} }, reaper.NotRestored,
			"the backend cannot restore its releases"},
		{"the places are taken", func(r *ruin) {
			for _, name := range []string{"new-1", "new-2"} {
				_, _ = r.one.Reserve("a", app(name))
			}
		}, reaper.Taken, "its place is taken: it is now pod default/new-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRuin(t)
			tt.change(r)
			before := contentsOf(t, r.one)
			report, err := r.undoPartly(t)
			equal(t, "fates", fates(report), []string{
				"one/a/2 " + string(tt.want), "one/a/3 " + string(tt.want), "two/a/10.1.0.2/10.1.0.2 restored",
			})
			if e := report.Entries[0].Error; !strings.HasPrefix(e, tt.why) || !strings.Contains(err.Error(), "one: a: 2: "+tt.why) {
				t.Errorf("%q in %v, want it to tell that %s", e, err, tt.why)
			}
			equal(t, "first store", contentsOf(t, r.one), before)
			equal(t, "second store", contentsOf(t, r.two), r.beforeTwo)
		})
	}
}

// Promise 7. Whatever the store answers is told.
func TestFatesOfRecords(t *testing.T) {
	for answer, want := range map[error]reaper.RestoreCounts{
		nil:                            {Records: 1, Restored: 1},
		reaper.ErrPresent:              {Records: 1, Present: 1},
		reaper.ErrTaken:                {Records: 1, Taken: 1},
		errors.New("no such resource"): {Records: 1, Failed: 1},
	} {
		calls := 0
		w := newWorld(dam{fixedStore{poolOf()}, answer, &calls})
		report, err := reaper.Restore(t.Context(), w.undoing(func(o *reaper.RestoreOptions) {
			o.Journal.Records = []reaper.Record{{Backend: "fixed", Pool: "pool", Key: "1", IP: "10.0.0.1"}}
		}))
		equal(t, "summary", report.Summary, want)
		equal(t, "times it was put back", calls, 1)
		equal(t, "it is an error", err != nil, want.Taken+want.Failed > 0)
	}
}

// An owner that came back and adopted another address stays as it is; what is put
// back is as leaked as before, and goes again.
func TestWhatWasPutBackIsReleasedAgain(t *testing.T) {
	r := newRuin(t)
	r.undo(t)
	equal(t, "released by the next run", r.run(t).Summary.Released, 3)
	r.undo(t)
	r.policy.GracePeriod = policy.Default().GracePeriod
	equal(t, "suspected where there is a grace period", r.run(t).Summary.Suspected, 3)
	r.same(t)
}

// Promise 10. What several looks of one run released is undone together.
func TestRunThatWaitedIsUndoneAsAWhole(t *testing.T) {
	w, m := patient(t)
	sooner(w, 5*time.Minute)
	before := contentsOf(t, m)
	(&bed{}).in(w)
	equal(t, "released", w.run(t).Summary.Released, 2)
	equal(t, "summary", w.undo(t).Summary, reaper.RestoreCounts{Records: 2, Restored: 2})
	equal(t, "store", contentsOf(t, m), before)
}

// Promise 1, 10. Objects of protection.reservedIPs are back before what they keep.
func TestRestorePutsReservedIPsBackFirst(t *testing.T) {
	w, m, s := retaining(t, expiring(keeping("a", hours(0), ip2)))
	before := contentsOf(t, m)
	equal(t, "released", w.run(t).Summary.Released, 2)
	var order []string
	m.OnRequest(func(request string) error { order = append(order, request); return nil })
	s.hook = func(request string) error { order = append(order, request); return nil }
	w.undo(t)
	equal(t, "order", order, []string{"list", "list", "restore ns/a", "restore a"})
	equal(t, "store", contentsOf(t, m), before)
	equal(t, "objects", s.keys(), []string{"ns/a"})
}

// Handles without an address have none to be named by.
func TestRestorePutsEmptyHandlesBack(t *testing.T) {
	m := backendtest.NewHandled("handled")
	w := newWorld(m.Backend())
	w.fill(t, m, "live-1")
	m.Begin("sandbox-lost")
	w.run(t)
	w.now = noon.Add(4 * time.Minute)
	before := contentsOf(t, m)
	equal(t, "released", w.run(t).Summary.Released, 1)
	equal(t, "fates", fates(w.undo(t)), []string{"handled/handles/sandbox-lost restored"})
	equal(t, "store", contentsOf(t, m), before)
}
