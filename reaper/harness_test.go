package reaper_test

import (
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
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// noon is the time of most tests. The listing and the second look read another clock:
// the real one, or that of a synctest bubble.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// The pods and addresses of most tests. Web has 10.0.0.1.
var (
	web   = ipam.PodRef{Namespace: "default", Name: "web"}
	other = ipam.PodRef{Namespace: "default", Name: "other"}
	ip1   = netip.MustParseAddr("10.0.0.1")
	ip2   = netip.MustParseAddr("10.0.0.2")
)

// Errors of a cluster: after the first, the same request may succeed later. After the
// second, it never will.
var (
	errConnection = errors.New("connect: connection refused")
	errForbidden  = fmt.Errorf("%w: pods is forbidden", ipam.ErrRefused)
)

// webAllocation returns the allocation that most decisions are about: 10.0.0.1, of the
// pod web.
func webAllocation() ipam.Allocation {
	return ipam.Allocation{
		Key: "1", IP: ip1, Token: "t1",
		Owner: ipam.Owner{Pod: web, Sandbox: "s1", Interface: "net1"},
	}
}

// poolOf returns a pool of one network with the allocations.
func poolOf(entries ...ipam.Allocation) ipam.Pool {
	return ipam.Pool{Name: "pool", Network: "-", Allocations: entries}
}

// on returns the interfaces of a pod that shows addresses on one of them.
func on(name string, ips ...netip.Addr) []census.Interface {
	return []census.Interface{{Name: name, Addresses: ips}}
}

// showing returns a pod that shows addresses on net1.
func showing(ref ipam.PodRef, ips ...netip.Addr) census.Pod {
	return census.Pod{Ref: ref, Addresses: ips, Interfaces: on("net1", ips...)}
}

// finished returns the pod in phase Succeeded or Failed.
func finished(pod census.Pod) census.Pod {
	pod.Finished = true
	return pod
}

// A situation has the facts of a decision.
type situation struct {
	policy func(*policy.Policy)
	pools  []ipam.Pool
	pods   []census.Pod
	sets   []census.StatefulSet
	nodes  []census.Node
	guests []census.VirtualMachine
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

// censusOf returns a census of these pods that begins now.
func censusOf(pods ...census.Pod) census.Census { return census.New(time.Now(), pods, nil) }

// inventory lists the stores.
func inventory(t *testing.T, stores ...ipam.Backend) ipam.Inventory {
	t.Helper()
	return ipam.TakeInventory(t.Context(), stores, func(string) bool { return true }, reservedIPsName)
}

// A decision has the fields of a judge.Decision that tables compare.
type decision struct {
	Verdict judge.Verdict
	Reason  judge.Reason
	Note    string
}

// early is how much a run may cut a grace period short, because CronJobs jitter.
func early(grace time.Duration) time.Duration {
	if grace < 5*time.Minute {
		return 0
	}
	return min(grace/60, 15*time.Second)
}

// decisionOf returns those fields.
func decisionOf(d judge.Decision) decision { return decision{d.Verdict, d.Reason, d.Note} }

// decided returns a decision that code other than Judge made.
func decided(v judge.Verdict, a ipam.Allocation) judge.Decision {
	return judge.Decision{Allocation: &a, Ruling: &judge.Ruling{Verdict: v, Reason: judge.PodAbsent}}
}

// A memoryLedgers is a ledger.Store in memory. Like the real one, it keeps the stored form.
type memoryLedgers struct {
	mu     sync.Mutex
	stored []byte // nil if none is stored
	onLoad func() error
	onSave func() error
	saves  int

	capacity int // in bytes; 0 is 1 MiB
}

func (n *memoryLedgers) Load(context.Context) (ledger.Ledger, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.onLoad != nil {
		if err := n.onLoad(); err != nil {
			return ledger.Ledger{}, err
		}
	}
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
		if err := n.onSave(); errors.Is(err, ledger.ErrLeft) {
			n.stored = l.Encode()
			return err
		} else if err != nil {
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

// A tokenRecorder has the methods for records of a backend, for stores of tests. It records the
// token and restores nothing.
type tokenRecorder struct{}

func (tokenRecorder) Record(_ context.Context, as []ipam.Allocation) ([]json.RawMessage, error) {
	records := make([]json.RawMessage, len(as))
	for i, a := range as {
		records[i] = fmt.Appendf(nil, "%q", a.Token)
	}
	return records, nil
}

func (tokenRecorder) Compare(_ context.Context, _ string, rs []ipam.Record) []error {
	return make([]error, len(rs))
}

func (tokenRecorder) Restore(_ context.Context, _ string, rs []ipam.Record) []error {
	return make([]error, len(rs))
}

// harness returns a harness with the pools, the cluster and the node of the situation.
func (s situation) harness() *harness {
	h := newHarness(fixedStore(s.pools))
	h.pods.Add(s.pods...)
	h.pods.AddSets(s.sets...)
	h.pods.AddNodes(s.nodes...)
	h.pods.AddMachines(s.guests...)
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
	policy   policy.Policy
	backends []ipam.Backend
	pods     *backendtest.Pods
	onNode   bool // the run is on a node, which has the sandboxes of pods
	ledgers  *memoryLedgers
	journal  *backendtest.Journal
	now      time.Time
	change   func(*reaper.Options)
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

// A fixedStore lists its pools and releases nothing.
type fixedStore []ipam.Pool

func (fixedStore) Name() string { return "fixed" }

func (s fixedStore) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		for _, pool := range s {
			if !yield(pool, nil) {
				return
			}
		}
	}
}

func (fixedStore) Record(ctx context.Context, as []ipam.Allocation) ([]json.RawMessage, error) {
	return tokenRecorder{}.Record(ctx, as)
}

func (fixedStore) Compare(ctx context.Context, pool string, rs []ipam.Record) []error {
	return tokenRecorder{}.Compare(ctx, pool, rs)
}

func (fixedStore) Restore(ctx context.Context, pool string, rs []ipam.Record) []error {
	return tokenRecorder{}.Restore(ctx, pool, rs)
}

func (fixedStore) Release(_ context.Context, ws []ipam.Warrant) []error {
	return make([]error, len(ws))
}
