package reaper_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// What the tests of this package share with those of others, by short names.
var (
	noon, web, other, ip1, ip2 = reapertest.Noon, reapertest.Web, reapertest.Other, reapertest.IP1, reapertest.IP2

	webAllocation = reapertest.WebAllocation
	calicoOf      = reapertest.CalicoOf
	lease         = reapertest.Lease
	allocations   = reapertest.Allocations
	poolOf        = reapertest.PoolOf
	showing       = reapertest.Showing
	finished      = reapertest.Finished
	hanging       = reapertest.Hanging
	mirrored      = reapertest.Mirrored
	booted        = reapertest.Booted
	tunnelOn      = reapertest.TunnelOn
)

type fixedStore = reapertest.Store

// atLeast is how much of a grace period of 15 minutes passes before a release: a run may
// start a little early, by the jitter of its CronJob.
const atLeast = 15*time.Minute - 15*time.Second

// Errors of a cluster: after the first, the same request may succeed later. After the
// second, it never will.
var (
	errConnection = errors.New("connect: connection refused")
	errForbidden  = fmt.Errorf("%w: pods is forbidden", ipam.ErrRefused)
)

// A situation has the facts of a decision.
type situation struct {
	policy func(*policy.Policy)
	pools  []ipam.Pool
	pods   []census.Pod
	sets   []census.StatefulSet
	nodes  []census.Node
	ledger ledger.Ledger

	sandboxes []string // of the node; nil if they were not read
}

// terms returns the default policy with the changes of the situation.
func (s situation) terms() policy.Policy {
	p := policy.Default()
	if s.policy != nil {
		s.policy(&p)
	}
	return p
}

// judge returns the decisions at a time. It fails the test if one of them has no
// evidence.
func (s situation) judge(t *testing.T, now time.Time) []judge.Decision {
	t.Helper()
	inv := inventory(t, fixedStore(s.pools))
	decisions := judge.Judge(now, s.terms(), inv, s.census(t), s.ledger)
	for _, d := range decisions {
		if len(d.Evidence) == 0 {
			t.Errorf("%s %s of %s has no evidence", d.Verdict, d.Reason, d.Allocation.Key)
		}
	}
	return decisions
}

// census takes the census of the situation.
func (s situation) census(t *testing.T) census.Census {
	t.Helper()
	census, err := census.Take(t.Context(), s.harness().options().Cluster, census.Scope{StatefulSets: true, Nodes: s.nodes != nil})
	if err != nil {
		t.Fatal(err)
	}
	return census
}

// inventory lists the stores.
func inventory(t *testing.T, stores ...ipam.Backend) ipam.Inventory {
	t.Helper()
	return ipam.TakeInventory(t.Context(), stores, func(string) bool { return true })
}

// A decision has the fields of a judge.Decision that tables compare.
type decision struct {
	Verdict judge.Verdict
	Reason  judge.Reason
	Note    string
}

// decisionOf returns those fields.
func decisionOf(d judge.Decision) decision { return decision{d.Verdict, d.Reason, d.Note} }

// A memoryLedgers is a ledger.Store in memory. Like the real one, it keeps the stored form.
type memoryLedgers struct {
	mu     sync.Mutex
	stored []byte // nil if none is stored
	have   []byte // as it was loaded or saved last
	onLoad func() error
	onSave func() error
	saves  int
	lose   func(ledger.Ledger) bool // whether the answer to a write is lost

	capacity int // in bytes; 0 is 1 MiB
}

func (n *memoryLedgers) Load(context.Context) (ledger.Ledger, error) {
	if n.onLoad != nil { // it may take its time, and another run may load the ledger meanwhile
		if err := n.onLoad(); err != nil {
			return ledger.Ledger{}, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.have = n.stored
	if n.stored == nil {
		return ledger.Ledger{}, nil
	}
	return ledger.Decode(n.stored)
}

func (n *memoryLedgers) Capacity() int {
	if n.capacity > 0 {
		return n.capacity
	}
	return 1 << 20
}

func (n *memoryLedgers) Save(_ context.Context, l ledger.Ledger) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.saves++
	if n.onSave != nil {
		if err := n.onSave(); err != nil {
			return err
		}
	}
	n.stored = l.Encode()
	if n.lose != nil && n.lose(l) {
		return fmt.Errorf("%w: no answer", ipam.ErrAgain)
	}
	n.have = n.stored
	return nil
}

func (n *memoryLedgers) Changed(context.Context) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stored == nil && n.have != nil {
		return false, errors.New("it is gone")
	}
	return !bytes.Equal(n.stored, n.have), nil
}

// text returns the stored ledger as tests write it; empty if none is stored.
func (n *memoryLedgers) text(t testing.TB) string {
	t.Helper()
	if n.stored == nil {
		return ""
	}
	l, err := ledger.Decode(n.stored)
	if err != nil {
		t.Fatal(err)
	}
	return textOf(l)
}

// put stores a ledger given in JSON.
func (n *memoryLedgers) put(t testing.TB, text string) {
	t.Helper()
	n.stored = ledgerOfText(t, text).Encode()
}

// ledgerOfText returns a ledger given in JSON.
func ledgerOfText(t testing.TB, text string) ledger.Ledger {
	t.Helper()
	var form ledgertest.Ledger
	if err := json.Unmarshal([]byte(text), &form); err != nil {
		t.Fatal(err)
	}
	return ledgerOfForm(t, form)
}

// ledgerOfForm returns a ledger from its stored form.
func ledgerOfForm(t interface{ Fatal(...any) }, form ledgertest.Ledger) ledger.Ledger {
	l, err := ledger.Decode(form.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// textOf returns a ledger in JSON.
func textOf(l ledger.Ledger) string {
	form, err := ledgertest.Decode(l.Encode())
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(form)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// harness returns a harness with the pools, the cluster and the node of the situation.
func (s situation) harness() *harness {
	h := newHarness(fixedStore(s.pools))
	h.pods.Add(s.pods...)
	h.pods.AddSets(s.sets...)
	h.pods.AddNodes(s.nodes...)
	h.onNode = s.sandboxes != nil
	for _, id := range s.sandboxes {
		h.pods.AddSandboxes(census.Sandbox{ID: id})
	}
	return h
}

// report returns the report of a dry run at noon over the situation.
func (s situation) report(t *testing.T) report.Report {
	t.Helper()
	h := s.harness()
	h.policy, h.ledgers.stored = s.terms(), s.ledger.Encode()
	h.policy.DryRun = new(true)
	h.policy.Limits.MaxFraction = new(1.0)
	return h.run(t)
}

// seen returns the ledger after one more run over the pools and pods of the situation.
func (s situation) seen(t *testing.T, now time.Time) ledger.Ledger {
	t.Helper()
	h := s.harness()
	h.pods.Add(census.Pod{Ref: ipam.PodRef{Namespace: "kube-system", Name: "dns"}})
	h.policy = s.terms()
	h.policy.DryRun = new(bool)
	h.ledgers.stored = s.ledger.Encode()
	h.now = now
	h.run(t)
	l, err := ledger.Decode(h.ledgers.stored)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A harness has the surroundings of a run: policy, backends, cluster, ledger, journal,
// clock.
type harness struct {
	policy     policy.Policy
	backends   []ipam.Backend
	protectors []ipam.Protector
	pods       *backendtest.Pods
	onNode     bool // the run is on a node, which has the sandboxes of pods
	ledgers    *memoryLedgers
	journal    *backendtest.Journal
	now        time.Time
	change     func(*reaper.Options)
}

// newHarness returns a harness with an empty cluster and an empty ledger. Its policy
// releases without a grace period.
func newHarness(backends ...ipam.Backend) *harness {
	return &harness{
		policy: backendtest.Impatient(), backends: backends,
		pods: &backendtest.Pods{}, ledgers: &memoryLedgers{}, journal: &backendtest.Journal{}, now: noon,
	}
}

// options returns the options of the next run. The time does not change during a run.
func (h *harness) options() reaper.Options {
	o := reaper.Options{
		ID: "run-1", Origin: report.Origin{Version: "v1", Cluster: "https://cluster"}, Policy: h.policy,
		Backends: h.backends, Protectors: h.protectors, Cluster: h.pods, Ledgers: h.ledgers, Journals: h.journal,
		Now:    func() time.Time { return h.now },
		Logger: slog.New(slog.DiscardHandler),
	}
	if h.onNode {
		o.Cluster = backendtest.OnNode(h.pods)
	}
	if h.change != nil {
		h.change(&o)
	}
	return o
}

// also makes the runs of the harness change their options with one more function.
func (h *harness) also(change func(*reaper.Options)) {
	before := h.change
	h.change = func(o *reaper.Options) {
		if before != nil {
			before(o)
		}
		change(o)
	}
}

// run runs, and fails the test if the run returns an error.
func (h *harness) run(t *testing.T) report.Report {
	t.Helper()
	report, err := reaper.Run(t.Context(), h.options())
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

// asValues compares addresses as values.
var asValues = cmpopts.EquateComparable(netip.Addr{})

// calls has what several goroutines do, in order. The zero calls has none.
type calls struct {
	mu  sync.Mutex
	all []string
}

// of returns a hook that notes the requests to one store.
func (c *calls) of(store string) func(request string) error {
	return func(request string) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = append(c.all, store+request)
		return nil
	}
}

// inPhases returns the calls, with those of each phase in the order of their names: the stores are
// listed at the same time, and then what is alive.
func (c *calls) inPhases() []string {
	stores := 0
	for stores < len(c.all) && strings.HasSuffix(c.all[stores], ": list") {
		stores++
	}
	slices.Sort(c.all[:stores])
	living := stores
	for living < len(c.all) && strings.HasPrefix(c.all[living], "list ") {
		living++
	}
	slices.Sort(c.all[stores:living])
	return c.all
}

// A scriptedStore lists its steps, in their order.
type scriptedStore struct {
	fixedStore
	name  string
	steps []step
}

type step struct {
	pool ipam.Pool
	err  error
}

func (s scriptedStore) Name() string { return s.name }

func (s scriptedStore) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		for _, st := range s.steps {
			if !yield(st.pool, st.err) {
				return
			}
		}
	}
}

// A namedStore is a fixedStore with its own name.
type namedStore struct {
	fixedStore
	name string
}

func (s namedStore) Name() string { return s.name }

// newSequence returns a harness for runs that release by the default policy, on a cluster that
// changes between them.
func newSequence(stores ...ipam.Backend) *harness {
	h := newHarness(stores...)
	h.policy = policy.Default()
	h.policy.DryRun, h.policy.Limits.MaxFraction = new(bool), new(1.0)
	h.cluster(nil)
	return h
}

// cluster sets the pods and nodes of the cluster, and adds a pod that has no address.
func (h *harness) cluster(pods []census.Pod, nodes ...census.Node) {
	h.pods = &backendtest.Pods{}
	h.pods.Add(census.Pod{Ref: ipam.PodRef{Namespace: "kube-system", Name: "dns"}})
	h.pods.Add(pods...)
	h.pods.AddNodes(nodes...)
}

// entryIn runs, and returns the only entry of a backend.
func (h *harness) entryIn(t *testing.T, backend string) report.Entry {
	t.Helper()
	entries := h.run(t).Entries
	i := slices.IndexFunc(entries, func(e report.Entry) bool { return e.Backend == backend })
	if i < 0 {
		t.Fatal("no entry of " + backend)
	}
	return entries[i]
}

// kept fails the test if the entry is an orphan.
func kept(t *testing.T, what string, e report.Entry) {
	t.Helper()
	if e.Verdict == judge.Orphaned {
		t.Errorf("%s: %s %s (%s), first seen %v", what, e.Verdict, e.Reason, e.Note, e.FirstSeen)
	}
}
