package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// restoreOptions returns the options of a restore of the last run.
func (h *harness) restoreOptions(change ...func(*reaper.RestoreOptions)) reaper.RestoreOptions {
	o := reaper.RestoreOptions{
		ID: "restore-1", Origin: report.Origin{Version: "v1", Cluster: "https://cluster"}, Journal: h.journal.Read(),
		Backends: h.backends, Protectors: h.protectors, Cluster: h.pods,
		Now:    func() time.Time { return h.now },
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// restore restores the last run, and fails the test if that returns an error.
func (h *harness) restore(t *testing.T, change ...func(*reaper.RestoreOptions)) report.RestoreReport {
	t.Helper()
	report, err := reaper.Restore(t.Context(), h.restoreOptions(change...))
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	return report
}

// restorePartly is restore for journals with some record that cannot be put back.
func (h *harness) restorePartly(t *testing.T, change ...func(*reaper.RestoreOptions)) (report.RestoreReport, error) {
	t.Helper()
	rep, err := reaper.Restore(t.Context(), h.restoreOptions(change...))
	if partial := (*report.PartialError)(nil); !errors.As(err, &partial) {
		t.Fatalf("restore: %v, want a PartialError", err)
	}
	return rep, err
}

// restoreOutcomes returns the outcomes of the records, as backend/pool/key outcome.
func restoreOutcomes(r report.RestoreReport) []string {
	all := make([]string, len(r.Entries))
	for i, e := range r.Entries {
		all[i] = fmt.Sprintf("%s/%s/%s %s", e.Backend, e.Pool, e.Key, e.Outcome)
	}
	return all
}

// A releasedHarness is a harness in which a run has just released gone-1 and gone-2 of
// one store and gone-3 of a second one. It has the contents of both stores before that.
type releasedHarness struct {
	*harness
	one, two             *backendtest.Memory
	beforeOne, beforeTwo map[string]string
}

func newReleasedHarness(t *testing.T) *releasedHarness {
	t.Helper()
	r := &releasedHarness{one: backendtest.NewMemory("one"), two: backendtest.NewTwoStep("two")}
	r.harness = newHarness(r.one.Backend(), r.two.Backend())
	_, _ = r.two.Reserve("skipped", app("dns")) // so that the stores have other ranges
	_ = r.two.Free("skipped", app("dns"))
	r.addPods(t, r.one, "live-1", "gone-1", "gone-2")
	r.addPods(t, r.two, "live-1", "gone-3")
	r.beforeOne, r.beforeTwo = contentsOf(t, r.one), contentsOf(t, r.two)
	equal(t, "released", r.run(t).Summary.Released, 3)
	r.pods.Calls()
	return r
}

// wantRestored fails the test unless both stores have the contents from before the run.
func (r *releasedHarness) wantRestored(t *testing.T) {
	t.Helper()
	equal(t, "first store", contentsOf(t, r.one), r.beforeOne)
	equal(t, "second store", contentsOf(t, r.two), r.beforeTwo)
}

// Promise 7, 10.
func TestRestorePutsBackWhatARunReleased(t *testing.T) {
	r := newReleasedHarness(t)
	rep := r.restore(t)
	r.wantRestored(t)
	entry := func(backend, pool, key, ip, pod string) report.RestoreEntry {
		return report.RestoreEntry{
			Backend: backend, Pool: pool, Key: key, IP: ip, Outcome: report.Restored,
			Owner: ipam.EntryOwner{Namespace: "default", Pod: pod, Sandbox: "sandbox-" + pod, Interface: "net1"},
		}
	}
	run := journal.Run{ID: "run-1", StartedAt: noon, Version: "v1", Cluster: "https://cluster"}
	equal(t, "report", rep, report.RestoreReport{
		APIVersion: "ip-reaper/v1alpha1", Kind: "RestoreReport",
		Run:     report.RunInfo{ID: "restore-1", StartedAt: noon, FinishedAt: noon, Origin: report.Origin{Version: "v1", Cluster: "https://cluster"}},
		Journal: run,
		Summary: report.RestoreCounts{Records: 3, Restored: 3},
		Entries: []report.RestoreEntry{
			entry("one", "a", "2", "10.0.0.2", "gone-1"), entry("one", "a", "3", "10.0.0.3", "gone-2"),
			entry("two", "a/10.1.0.2", "10.1.0.2", "10.1.0.2", "gone-3"),
		},
	}, cmpopts.IgnoreUnexported(report.RestoreReport{}))

	again := r.restore(t)
	equal(t, "summary of the second time", again.Summary, report.RestoreCounts{Records: 3, Present: 3})
	r.wantRestored(t)
}

// Promise 5.
func TestDryRunOfARestoreWritesNothing(t *testing.T) {
	r := newReleasedHarness(t)
	afterOne, afterTwo := contentsOf(t, r.one), contentsOf(t, r.two)
	askedOne, askedTwo := requests(r.one), requests(r.two)
	lock := heldLock()
	rep := r.restore(t, func(o *reaper.RestoreOptions) { o.DryRun, o.Lock = true, lock })
	equal(t, "summary", rep.Summary, report.RestoreCounts{Records: 3, Planned: 3})
	equal(t, "dry run", rep.Run.DryRun, true)
	equal(t, "first store", contentsOf(t, r.one), afterOne)
	equal(t, "second store", contentsOf(t, r.two), afterTwo)
	equal(t, "requests", append(*askedOne, *askedTwo...), []string{"list", "compare a", "list", "compare a/10.1.0.2"})
	equal(t, "lock", lock.calls, nil)
	ledger := r.ledgers.stored
	r.restore(t, func(o *reaper.RestoreOptions) { o.DryRun, o.Ledgers = true, r.ledgers })
	equal(t, "ledger", r.ledgers.stored, ledger)
}

// Promise 5, 7. A dry run says for each record what a real one would find.
func TestDryRunOfARestoreComparesWithTheStores(t *testing.T) {
	dry := func(o *reaper.RestoreOptions) { o.DryRun = true }
	r := newReleasedHarness(t)
	r.restore(t, func(o *reaper.RestoreOptions) { o.Selection.Addresses = []netip.Addr{ip2} })
	equal(t, "outcomes", restoreOutcomes(r.restore(t, dry)), []string{"one/a/2 present", "one/a/3 planned", "two/a/10.1.0.2/10.1.0.2 planned"})

	r.two.OnRequest(failing(fmt.Errorf("%w by shop/web-9", ipam.ErrTaken), "compare a/10.1.0.2"))
	rep, err := r.restorePartly(t, dry)
	equal(t, "outcomes", restoreOutcomes(rep), []string{"one/a/2 present", "one/a/3 planned", "two/a/10.1.0.2/10.1.0.2 taken"})
	equal(t, "summary", rep.Summary, report.RestoreCounts{Records: 3, Planned: 1, Present: 1, Taken: 1})
	if !errors.Is(err, ipam.ErrTaken) {
		t.Errorf("error %v, want that a place is taken", err)
	}
}

// Two records of one place are planned as they would be restored: the last one goes there.
func TestDryRunOfARestorePlansOneRecordOfAPlace(t *testing.T) {
	r := newReleasedHarness(t)
	report, _ := r.restorePartly(t, func(o *reaper.RestoreOptions) {
		older := o.Journal.Records[0]
		older.Stored = []byte(strings.Replace(string(older.Stored), "sandbox-", "older-", 1))
		o.DryRun, o.Journal.Writes, o.Journal.Records = true, []int{1, 3}, append([]ipam.Record{older}, o.Journal.Records...)
	})
	equal(t, "outcomes", restoreOutcomes(report), []string{
		"one/a/2 taken", "one/a/2 planned", "one/a/3 planned", "two/a/10.1.0.2/10.1.0.2 planned",
	})
}

// Promise 1. What a run released from one etcd is not put into another one.
func TestRestoreIntoAnotherStoreIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name             string
		known, is        string
		accepted, refuse bool
	}{
		{"the same", "A", "A", false, false},
		{"another one", "A", "B", false, true},
		{"none any more", "A", "", false, true},
		{"another one, accepted", "A", "B", true, false},
		{"no run knew it", "", "B", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReleasedHarness(t)
			before := contentsOf(t, r.one)
			o := r.restoreOptions(func(o *reaper.RestoreOptions) { o.AcceptOtherCluster, o.Ledgers = tt.accepted, r.ledgers })
			o.Backends[0] = &outsideStore{Backend: o.Backends[0], id: tt.is}
			known, err := o.Ledgers.Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tt.known != "" {
				known.Stores = map[string]string{"one": tt.known}
			}
			if err := o.Ledgers.Save(t.Context(), known); err != nil {
				t.Fatal(err)
			}
			_, err = reaper.Restore(t.Context(), o)
			equal(t, "refused", errors.Is(err, reaper.ErrAnotherStore), tt.refuse)
			if tt.refuse {
				equal(t, "store", contentsOf(t, r.one), before)
			} else {
				r.wantRestored(t)
			}
		})
	}
}

// Promises 1, 7. A journal of another cluster is refused, with or without a dry run. Where it is not
// known which clusters these are, another address is a warning.
func TestJournalOfAnotherCluster(t *testing.T) {
	const elsewhere = "https://elsewhere"
	address := []string{"the journal is from a run against https://cluster; this is " + elsewhere}
	another := "the journal is from a run on another cluster, https://cluster: the namespace kube-system has the UID one there and two here"
	for _, tt := range []struct {
		name        string
		journal, is string // the UIDs
		change      func(*reaper.RestoreOptions)
		refused     bool
		warnings    []string
	}{
		{"the same, at another address", "one", "one", nil, false, nil},
		{"another one", "one", "two", nil, true, nil},
		{"another one at the same address", "one", "two", func(o *reaper.RestoreOptions) { o.Origin.Cluster = "https://cluster" }, true, nil},
		{"another one, accepted", "one", "two", func(o *reaper.RestoreOptions) { o.AcceptOtherCluster = true }, false, []string{another}},
		{"the journal does not say", "", "two", nil, false, address},
		{"the cluster does not say", "one", "", nil, false, address},
		{"another node of the cluster", "one", "one", func(o *reaper.RestoreOptions) { o.Node = "n1" }, false,
			[]string{"the journal is from a run against https://cluster; this is node n1"}},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dry run: %v", tt.name, dry), func(t *testing.T) {
				r := newReleasedHarness(t)
				before := contentsOf(t, r.one)
				report, err := reaper.Restore(t.Context(), r.restoreOptions(func(o *reaper.RestoreOptions) {
					o.Origin.Cluster, o.Journal.Run.ClusterUID, o.ClusterUID, o.DryRun = elsewhere, tt.journal, tt.is, dry
					if tt.change != nil {
						tt.change(o)
					}
				}))
				equal(t, "refused", errors.As(err, new(*ipam.InputError)), tt.refused)
				equal(t, "warnings", report.Warnings, tt.warnings)
				if tt.refused {
					equal(t, "error", err.Error(), another)
				}
				if tt.refused || dry {
					equal(t, "store", contentsOf(t, r.one), before)
				} else {
					r.wantRestored(t)
				}
			})
		}
	}
}

// Promise 10. All writes of a journal describe the run alike, even if the cluster cannot always be
// identified: otherwise the later ones count as damaged.
func TestJournalHasItsClusterOnce(t *testing.T) {
	h, _ := memoryHarness(t, "live-1", "gone-1", "gone-2")
	h.policy.Limits.MaxFraction = new(1.0)
	h.policy.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"gone-2"}}, GracePeriod: &policy.Duration{Duration: time.Hour}}}
	uids := []string{"one", ""}
	h.also(func(o *reaper.Options) {
		o.ClusterUID = func(context.Context) string {
			uid := uids[0]
			uids = uids[1:]
			return uid
		}
		o.Sleep = func(_ context.Context, d time.Duration) error {
			h.now = h.now.Add(d)
			return nil
		}
	})
	equal(t, "released", h.run(t).Summary.Released, 2)
	past := h.journal.Read()
	equal(t, "records", len(past.Records), 2)
	equal(t, "cluster", past.Run.ClusterUID, "one")
	equal(t, "questions", len(uids), 1)
}

// Promise 2, 9. A pod that could not be listed may have the address.
func TestRestoreWritesNothingWithoutACensus(t *testing.T) {
	r := newReleasedHarness(t)
	askedOne, askedTwo := requests(r.one), requests(r.two)
	r.pods.OnCall(func(string) error { return errForbidden })
	lock := &fakeLock{}
	rep, err := reaper.Restore(t.Context(), r.restoreOptions(func(o *reaper.RestoreOptions) { o.Lock = lock }))
	if partial := (*report.PartialError)(nil); !errors.Is(err, errForbidden) || errors.As(err, &partial) {
		t.Errorf("restore: %v, want the census's error and nothing else", err)
	}
	equal(t, "requests", append(*askedOne, *askedTwo...), []string{"list", "list"})
	equal(t, "summary", rep.Summary, report.RestoreCounts{Records: 3, Failed: 3})
	equal(t, "lock", lock.calls, []string{"acquire restore restore-1", "release"})
}

func TestRestoreThatFindsTheLockTakenListsNothing(t *testing.T) {
	r := newReleasedHarness(t)
	askedOne, askedTwo := requests(r.one), requests(r.two)
	rep, err := reaper.Restore(t.Context(), r.restoreOptions(func(o *reaper.RestoreOptions) { o.Lock = heldLock() }))
	if locked := (*reaper.LockedError)(nil); !errors.As(err, &locked) {
		t.Errorf("restore: %v, want a LockedError", err)
	}
	equal(t, "requests", len(*askedOne)+len(*askedTwo), 0)
	equal(t, "calls of the cluster", r.pods.Calls(), nil)
	equal(t, "summary", rep.Summary, report.RestoreCounts{Records: 3, Failed: 3})
}

// Promise 7, 8. A record that was not begun is not back, and the report says so.
func TestCancelledRestoreReportsEveryRecord(t *testing.T) {
	r := newReleasedHarness(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	askedOne := requests(r.one)
	r.two.OnRequest(func(request string) error {
		if request == "restore a/10.1.0.2" {
			cancel()
		}
		return nil
	})
	report, err := reaper.Restore(ctx, r.restoreOptions())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("restore: %v, want it cancelled", err)
	}
	equal(t, "fates", restoreOutcomes(report), []string{"one/a/2 failed", "one/a/3 failed", "two/a/10.1.0.2/10.1.0.2 restored"})
	equal(t, "error", report.Entries[0].Error, "interrupted")
	equal(t, "requests", *askedOne, []string{"list", "list", "compare a"})
	r.restore(t)
	r.wantRestored(t)
}

// Promise 9.
func TestRestoreIsTriedAgainAndThenReported(t *testing.T) {
	for failures, want := range map[int]report.RestoreCounts{
		1: {Records: 3, Restored: 3}, 99: {Records: 3, Restored: 2, Failed: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newReleasedHarness(t)
			left := failures
			r.two.OnRequest(func(request string) error {
				if request == "list" || left == 0 {
					return nil
				}
				left--
				return errConnection
			})
			report, err := reaper.Restore(t.Context(), r.restoreOptions())
			equal(t, fmt.Sprintf("summary after %d failures", failures), report.Summary, want)
			equal(t, "error", errors.Is(err, errConnection), want.Failed > 0)
		})
	}
}
