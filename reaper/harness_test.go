package reaper_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// noon is the time of most tests. The listing and the second look read another clock:
// the real one, or that of a synctest bubble.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// The pods and addresses of most tests. Web has 10.0.0.1.
var (
	web   = reaper.PodRef{Namespace: "default", Name: "web"}
	other = reaper.PodRef{Namespace: "default", Name: "other"}
	ip1   = netip.MustParseAddr("10.0.0.1")
	ip2   = netip.MustParseAddr("10.0.0.2")
)

// Errors of a cluster: after the first, the same request may succeed later. After the
// second, it never will.
var (
	errConnection = errors.New("connect: connection refused")
	errForbidden  = fmt.Errorf("%w: pods is forbidden", reaper.ErrRefused)
)

// webAllocation returns the allocation that most decisions are about: 10.0.0.1, of the
// pod web.
func webAllocation() reaper.Allocation {
	return reaper.Allocation{
		Key: "1", IP: ip1, Token: "t1",
		Owner: reaper.Owner{Pod: web, Sandbox: "s1", Interface: "net1"},
	}
}

// poolOf returns a pool of one network with the allocations.
func poolOf(entries ...reaper.Allocation) reaper.Pool {
	return reaper.Pool{Name: "pool", Network: "-", Allocations: entries}
}

// on returns the interfaces of a pod that shows addresses on one of them.
func on(name string, ips ...netip.Addr) []reaper.Interface {
	return []reaper.Interface{{Name: name, Addresses: ips}}
}

// showing returns a pod that shows addresses on net1.
func showing(ref reaper.PodRef, ips ...netip.Addr) reaper.Pod {
	return reaper.Pod{Ref: ref, Addresses: ips, Interfaces: on("net1", ips...)}
}

// finished returns the pod in phase Succeeded or Failed.
func finished(pod reaper.Pod) reaper.Pod {
	pod.Finished = true
	return pod
}

// A situation has the facts of a decision.
type situation struct {
	policy func(*policy.Policy)
	pools  []reaper.Pool
	pods   []reaper.Pod
	sets   []reaper.StatefulSet
	nodes  []reaper.Node
	ledger reaper.Ledger

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
func (s situation) judge(t *testing.T, now time.Time) []reaper.Decision {
	t.Helper()
	inv := inventory(t, fixedStore(s.pools))
	census := reaper.NewCensus(time.Now(), s.pods, s.sets, s.nodes...)
	if s.sandboxes != nil {
		census = census.WithSandboxes(s.sandboxes...)
	}
	decisions := reaper.Judge(now, s.terms(), inv, census, s.ledger)
	for _, d := range decisions {
		if len(d.Evidence) == 0 {
			t.Errorf("%s %s of %s has no evidence", d.Verdict, d.Reason, d.Allocation.Key)
		}
	}
	return decisions
}

// censusOf returns a census of these pods that begins now.
func censusOf(pods ...reaper.Pod) reaper.Census { return reaper.NewCensus(time.Now(), pods, nil) }

// inventory lists the stores.
func inventory(t *testing.T, stores ...reaper.Backend) reaper.Inventory {
	t.Helper()
	return reaper.TakeInventory(t.Context(), stores, func(string) bool { return true }, reservedIPsName)
}

// A decision has the fields of a reaper.Decision that tables compare.
type decision struct {
	Verdict reaper.Verdict
	Reason  reaper.Reason
	Note    string
}

// early is by how much a run may cut a grace period short, because CronJobs jitter.
func early(grace time.Duration) time.Duration {
	if grace < 5*time.Minute {
		return 0
	}
	return min(grace/60, 15*time.Second)
}

// decisionOf returns those fields.
func decisionOf(d reaper.Decision) decision { return decision{d.Verdict, d.Reason, d.Note} }

// decided returns a decision that other code than Judge made.
func decided(v reaper.Verdict, a reaper.Allocation) reaper.Decision {
	return reaper.Decision{Allocation: &a, Ruling: &reaper.Ruling{Verdict: v, Reason: reaper.PodAbsent}}
}

// A memoryLedgers is a reaper.Ledgers in memory. Like the real one, it keeps the stored form.
type memoryLedgers struct {
	mu     sync.Mutex
	stored []byte // nil if none is stored
	onLoad func() error
	onSave func() error
	saves  int

	capacity int // in bytes; 0 is 1 MiB
}

func (n *memoryLedgers) Load(context.Context) (reaper.Ledger, error) {
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

func (n *memoryLedgers) Capacity() int {
	if n.capacity > 0 {
		return n.capacity
	}
	return 1 << 20
}

func (n *memoryLedgers) Save(_ context.Context, l reaper.Ledger) error {
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

// text returns the stored ledger as tests write it; empty if none is stored.
func (n *memoryLedgers) text(t testing.TB) string {
	t.Helper()
	if n.stored == nil {
		return ""
	}
	l, err := reaper.DecodeLedger(n.stored)
	if err != nil {
		t.Fatal(err)
	}
	return textOf(l)
}

// put stores a ledger that is given in JSON.
func (n *memoryLedgers) put(t testing.TB, text string) {
	t.Helper()
	n.stored = ledgerOfText(t, text).Encode()
}

// ledgerOfText returns a ledger that is given in JSON.
func ledgerOfText(t testing.TB, text string) reaper.Ledger {
	t.Helper()
	var form ledgertest.Ledger
	if err := json.Unmarshal([]byte(text), &form); err != nil {
		t.Fatal(err)
	}
	return ledgerOfForm(t, form)
}

// ledgerOfForm returns a ledger by its stored form.
func ledgerOfForm(t interface{ Fatal(...any) }, form ledgertest.Ledger) reaper.Ledger {
	l, err := reaper.DecodeLedger(form.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// textOf returns a ledger in JSON.
func textOf(l reaper.Ledger) string {
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

// A tokenRecorder has the methods for records of a backend, for stores of tests. It records the
// token and restores nothing.
type tokenRecorder struct{}

func (tokenRecorder) Record(_ context.Context, as []reaper.Allocation) ([]json.RawMessage, error) {
	records := make([]json.RawMessage, len(as))
	for i, a := range as {
		records[i] = fmt.Appendf(nil, "%q", a.Token)
	}
	return records, nil
}

func (tokenRecorder) Compare(_ context.Context, _ string, rs []reaper.Record) []error {
	return make([]error, len(rs))
}

func (tokenRecorder) Restore(_ context.Context, _ string, rs []reaper.Record) []error {
	return make([]error, len(rs))
}

// harness returns a harness with the pools, the cluster and the node of the situation.
func (s situation) harness() *harness {
	h := newHarness(fixedStore(s.pools))
	h.pods.Add(s.pods...)
	h.pods.AddSets(s.sets...)
	h.pods.AddNodes(s.nodes...)
	h.onNode = s.sandboxes != nil
	for _, id := range s.sandboxes {
		h.pods.AddSandboxes(reaper.Sandbox{ID: id})
	}
	return h
}

// seen returns the ledger after one more run over the pools and pods of the situation.
func (s situation) seen(t *testing.T, now time.Time) reaper.Ledger {
	t.Helper()
	h := s.harness()
	h.pods.Add(reaper.Pod{Ref: reaper.PodRef{Namespace: "kube-system", Name: "dns"}})
	h.policy = s.terms()
	h.policy.DryRun = new(bool)
	h.ledgers.stored = s.ledger.Encode()
	h.now = now
	h.run(t)
	l, err := reaper.DecodeLedger(h.ledgers.stored)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A harness has the surroundings of a run: policy, backends, cluster, ledger, journal,
// clock.
type harness struct {
	policy   policy.Policy
	backends []reaper.Backend
	pods     *backendtest.Pods
	onNode   bool // the run is on a node, which has the sandboxes of pods
	ledgers  *memoryLedgers
	journal  *backendtest.Journal
	now      time.Time
	change   func(*reaper.Options)
}

// newHarness returns a harness with an empty cluster and an empty ledger. Its policy
// releases without a grace period.
func newHarness(backends ...reaper.Backend) *harness {
	return &harness{
		policy: backendtest.Impatient(), backends: backends,
		pods: &backendtest.Pods{}, ledgers: &memoryLedgers{}, journal: &backendtest.Journal{}, now: noon,
	}
}

// options returns the options of the next run. The time does not change during a run.
func (h *harness) options() reaper.Options {
	o := reaper.Options{
		ID: "run-1", Version: "v1", Address: "https://cluster", Policy: h.policy,
		Backends: h.backends, Protectors: []string{reservedIPsName}, Cluster: h.pods, Ledgers: h.ledgers, Journals: h.journal,
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

// run runs, and fails the test if the run returns an error.
func (h *harness) run(t *testing.T) reaper.Report {
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

// listsFirst returns the calls with those that list stores in the order of their names:
// stores are listed at the same time.
func (c *calls) listsFirst() []string {
	n := 0
	for n < len(c.all) && strings.HasSuffix(c.all[n], ": list") {
		n++
	}
	slices.Sort(c.all[:n])
	return c.all
}
