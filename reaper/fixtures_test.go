package reaper_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// noon is when most tests take place. The listing and the confirmation read
// another clock, the real one or that of a synctest bubble.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// The entry that most verdicts are about is 10.0.0.1, and pod web's.
var (
	web   = reaper.PodRef{Namespace: "default", Name: "web"}
	other = reaper.PodRef{Namespace: "default", Name: "other"}
	ip1   = netip.MustParseAddr("10.0.0.1")
	ip2   = netip.MustParseAddr("10.0.0.2")
)

// What a cluster answers: that the same question may succeed later, or that it never
// will.
var (
	errConnection = errors.New("connect: connection refused")
	forbidden     = fmt.Errorf("%w: pods is forbidden", reaper.ErrRefused)
)

func webEntry() reaper.Allocation {
	return reaper.Allocation{
		Key: "1", IP: ip1, Token: "t1",
		Owner: reaper.Owner{Pod: web, Sandbox: "s1", Interface: "net1"},
	}
}

// pool is a pool of one network that holds the entries.
func poolOf(entries ...reaper.Allocation) reaper.Pool {
	return reaper.Pool{Name: "pool", Network: "-", Allocations: entries}
}

// showing returns a pod that shows addresses on net1.
func showing(ref reaper.PodRef, ips ...netip.Addr) reaper.Pod {
	return reaper.Pod{Ref: ref, Addresses: ips, Interfaces: map[string][]netip.Addr{"net1": ips}}
}

// finished returns the pod in phase Succeeded or Failed.
func finished(pod reaper.Pod) reaper.Pod {
	pod.Finished = true
	return pod
}

// A scene is what a verdict is made of.
type scene struct {
	policy func(*policy.Policy)
	pools  []reaper.Pool
	pods   []reaper.Pod
	sets   []reaper.StatefulSet
	nodes  []reaper.Node
	ledger reaper.Ledger
}

// terms returns the default policy as the scene changes it.
func (s scene) terms() policy.Policy {
	p := policy.Default()
	if s.policy != nil {
		s.policy(&p)
	}
	return p
}

// judge returns the verdicts at a time.
func (s scene) judge(t *testing.T, now time.Time) []reaper.Decision {
	t.Helper()
	inv := inventory(t, fixedStore(s.pools))
	decisions := reaper.Judge(now, s.terms(), inv, reaper.NewCensus(time.Now(), s.pods, s.sets, s.nodes...), s.ledger)
	for _, d := range decisions {
		if len(d.Evidence) == 0 {
			t.Errorf("%s %s of %s has no evidence", d.Verdict, d.Reason, d.Allocation.Key)
		}
	}
	return decisions
}

// censusOf is a census of these pods, begun now.
func censusOf(pods ...reaper.Pod) reaper.Census { return reaper.NewCensus(time.Now(), pods, nil) }

// inventory lists the stores.
func inventory(t *testing.T, stores ...reaper.Backend) reaper.Inventory {
	t.Helper()
	return reaper.TakeInventory(t.Context(), stores, func(string) bool { return true })
}

// A finding is what tables of verdicts compare.
type finding struct {
	Verdict reaper.Verdict
	Reason  reaper.Reason
	Note    string
}

func found(v reaper.Decision) finding { return finding{v.Verdict, v.Reason, v.Note} }

// A notebook is a reaper.Ledgers in memory. Like the real one, it keeps the
// stored form.
type notebook struct {
	mu     sync.Mutex
	stored []byte // nil where there is none
	onLoad func() error
	onSave func() error
	saves  int
}

func (n *notebook) Load(context.Context) (reaper.Ledger, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.onLoad != nil {
		if err := n.onLoad(); err != nil {
			return reaper.Ledger{}, err
		}
	}
	if n.stored == nil {
		return reaper.Ledger{}, nil
	}
	return reaper.DecodeLedger(n.stored)
}

func (n *notebook) Save(_ context.Context, l reaper.Ledger) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.saves++
	if n.onSave != nil {
		if err := n.onSave(); err != nil {
			return err
		}
	}
	n.stored = l.Encode()
	return nil
}

// written is the half of a backend that writes down and puts back, for those that
// tests make up: it writes down tokens and puts nothing back.
type written struct{}

func (written) Record(_ context.Context, rs []reaper.Allocation) ([]json.RawMessage, error) {
	records := make([]json.RawMessage, len(rs))
	for i, r := range rs {
		records[i] = fmt.Appendf(nil, "%q", r.Token)
	}
	return records, nil
}

func (written) Restore(_ context.Context, _ string, rs []reaper.Record) []error {
	return make([]error, len(rs))
}

// seen returns the ledger after one more run over the scene's pools and pods.
func (s scene) seen(t *testing.T, now time.Time) reaper.Ledger {
	t.Helper()
	w := newWorld(fixedStore(s.pools))
	w.pods.Add(s.pods...)
	w.pods.AddSets(s.sets...)
	w.pods.AddNodes(s.nodes...)
	w.pods.Add(reaper.Pod{Ref: reaper.PodRef{Namespace: "kube-system", Name: "dns"}})
	w.policy = s.terms()
	w.policy.DryRun = new(bool)
	w.notes.stored = s.ledger.Encode()
	w.now = now
	w.run(t)
	l, err := reaper.DecodeLedger(w.notes.stored)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A world is all that a run needs.
type world struct {
	policy   policy.Policy
	backends []reaper.Backend
	pods     *backendtest.Pods
	notes    *notebook
	journal  *backendtest.Journal
	now      time.Time
	change   func(*reaper.Options)
}

// newWorld returns a world of empty cluster and ledger, and a policy that
// releases without waiting.
func newWorld(backends ...reaper.Backend) *world {
	return &world{
		policy: backendtest.Impatient(), backends: backends,
		pods: &backendtest.Pods{}, notes: &notebook{}, journal: &backendtest.Journal{}, now: noon,
	}
}

// options are those of the next run. Time stands still in it.
func (w *world) options() reaper.Options {
	o := reaper.Options{
		ID: "run-1", Version: "v1", Address: "https://cluster", Policy: w.policy,
		Backends: w.backends, Cluster: w.pods, Ledgers: w.notes, Journals: w.journal,
		Now:         func() time.Time { return w.now },
		Logger:      slog.New(slog.DiscardHandler),
		Concurrency: 4,
	}
	if w.change != nil {
		w.change(&o)
	}
	return o
}

// run runs, and fails the test if that is no success.
func (w *world) run(t *testing.T) reaper.Report {
	t.Helper()
	report, err := reaper.Run(t.Context(), w.options())
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return report
}

// equal fails the test if two values differ.
func equal[T any](t *testing.T, what string, got, want T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// asValues lets addresses compare as values.
var asValues = cmpopts.EquateComparable(netip.Addr{})
