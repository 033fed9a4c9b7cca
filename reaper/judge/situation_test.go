package judge_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// What the tests of this package share with those of others, by short names.
var (
	noon, web, other, ip1, ip2 = reapertest.Noon, reapertest.Web, reapertest.Other, reapertest.IP1, reapertest.IP2

	webAllocation       = reapertest.WebAllocation
	calicoOf            = reapertest.CalicoOf
	lease               = reapertest.Lease
	supersededSituation = reapertest.Superseded
	poolOf              = reapertest.PoolOf
	on                  = reapertest.On
	showing             = reapertest.Showing
	finished            = reapertest.Finished
	hanging             = reapertest.Hanging
	mirrored            = reapertest.Mirrored
	booted              = reapertest.Booted
	tunnelOn            = reapertest.TunnelOn
)

type fixedStore = reapertest.Store

// A namedStore is a fixedStore with its own name.
type namedStore struct {
	fixedStore
	name string
}

func (s namedStore) Name() string { return s.name }

// ip returns 10.0.0.n.
func ip(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }

// ready returns a ready node.
func ready(name string) census.Node    { return census.Node{Name: name, Ready: true} }
func notReady(name string) census.Node { return census.Node{Name: name} }

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
	stopped   []string // of these, those that are not ready
	attached  []ipam.Attachment
	boot      string // of the node
	endpoints map[ipam.PodRef]ipam.Endpoint
}

// terms returns the default policy with the changes of the situation.
func (s situation) terms() policy.Policy {
	p := policy.Default()
	if s.policy != nil {
		s.policy(&p)
	}
	return p
}

// lists returns what there is besides the store.
func (s situation) lists() reapertest.Lists {
	return reapertest.Lists{Pods: s.pods, Sets: s.sets, Nodes: s.nodes, Machines: s.guests, Sandboxes: s.sandboxes, Attachments: s.attached, Stopped: s.stopped, Boot: s.boot}
}

// census takes the census of the situation.
func (s situation) census(t *testing.T) census.Census {
	t.Helper()
	return s.lists().Census(t, census.Scope{StatefulSets: true, Nodes: s.nodes != nil}).WithEndpoints(s.endpoints)
}

// judge returns the decisions at a time. It fails the test if one of them has no
// evidence.
func (s situation) judge(t *testing.T, now time.Time) []judge.Decision {
	t.Helper()
	inv := inventory(t, fixedStore(s.pools))
	c := s.census(t)
	decisions := judge.Judge(now, s.terms(), inv, c, s.ledger)
	checkWithoutInUse(t, decisions, now, s.terms(), inv, c, s.ledger)
	for _, d := range decisions {
		if len(d.Evidence) == 0 {
			t.Errorf("%s %s of %s has no evidence", d.Verdict, d.Reason, d.Allocation.Key)
		}
	}
	return decisions
}

// seen returns the ledger after one more run over the situation, in its stored form.
func (s situation) seen(t *testing.T, now time.Time) ledger.Ledger {
	t.Helper()
	w := newSequence(fixedStore(s.pools))
	w.policy, w.lists, w.endpoints, w.ledger, w.now = s.terms(), s.lists(), s.endpoints, s.ledger, now
	w.lists.Pods = append([]census.Pod{dns}, s.pods...)
	w.run(t)
	return w.ledger
}

// checkWithoutInUse compares all decisions with the verdicts that leave out what is plainly in use:
// they are the same, each in its place, and so is what the ledger remembers.
func checkWithoutInUse(t *testing.T, all []judge.Decision, now time.Time, p policy.Policy, inv ipam.Inventory, c census.Census, l ledger.Ledger) {
	t.Helper()
	v := judge.Decide(now, p, inv, c, l, false)
	equal(t, "decisions", len(all), inv.Size())
	decided, inUse := v.Decisions, v.InUse
	for i := range all {
		if d := &all[i]; len(inUse) > 0 && d.PlainlyInUse() && inUse[0].ID() == d.Allocation.ID() {
			inUse = inUse[1:]
			continue
		}
		if len(decided) == 0 {
			t.Fatalf("no decision on %s", all[i].Allocation.Label())
		}
		equal(t, "allocation", *decided[0].Allocation, *all[i].Allocation, cmpopts.EquateComparable(netip.Addr{}))
		if diff := cmp.Diff(all[i].Ruling, decided[0].Ruling, cmpopts.IgnoreUnexported(judge.Ruling{})); diff != "" {
			t.Errorf("without what is in use (-all +without):\n%s", diff)
		}
		decided = decided[1:]
	}
	equal(t, "decisions and allocations in use left", len(decided)+len(inUse), 0)
	n, decision := 0, 0
	for i, d := range v.Each {
		one, other := *d.Allocation, *all[n].Allocation
		equal(t, "in the order of the inventory", one.ID(), other.ID())
		equal(t, "verdict", d.Verdict, all[n].Verdict)
		equal(t, "reason", d.Reason, all[n].Reason)
		if i >= 0 {
			equal(t, "index", i, decision)
			decision++
		}
		n++
	}
	equal(t, "each", n, len(all))
	everything := judge.Decide(now, p, inv, c, l, true)
	l = l.Salted()
	remembered := judge.NextLedger(l, everything, c, inv, now)
	if !judge.NextLedger(l, v, c, inv, now).Equal(remembered) {
		t.Error("the ledger remembers something else without what is in use")
	}
}

// dns is a pod that has no address.
var dns = census.Pod{Ref: ipam.PodRef{Namespace: "kube-system", Name: "dns"}}

// A sequence has what a sequence of runs goes by. Between the runs, the cluster changes.
type sequence struct {
	policy    policy.Policy
	backends  []ipam.Backend
	objects   objects
	lists     reapertest.Lists
	endpoints map[ipam.PodRef]ipam.Endpoint
	ledger    ledger.Ledger
	now       time.Time
}

// newSequence returns a sequence by the default policy, that begins at noon.
func newSequence(stores ...ipam.Backend) *sequence {
	w := &sequence{policy: policy.Default(), backends: stores, now: noon}
	w.cluster(nil)
	return w
}

// cluster sets the pods and nodes of the cluster, and adds a pod that has no address.
func (w *sequence) cluster(pods []census.Pod, nodes ...census.Node) {
	w.lists = reapertest.Lists{Pods: append([]census.Pod{dns}, pods...), Nodes: nodes}
}

// run makes the decisions of a run, and remembers what a run does.
func (w *sequence) run(t *testing.T) []judge.Decision {
	t.Helper()
	inv := w.inventory(t)
	c := w.lists.Census(t, census.Scope{StatefulSets: true, Nodes: true}).WithEndpoints(w.endpoints)
	verdicts := judge.Decide(w.now, w.policy, inv, c, w.ledger, true)
	decisions := verdicts.Decisions
	checkWithoutInUse(t, decisions, w.now, w.policy, inv, c, w.ledger)
	next := judge.NextLedger(w.ledger.Salted(), verdicts, c, inv, w.now.Add(-w.policy.Journal.RestoreHold.Duration))
	var err error
	if w.ledger, err = ledger.Decode(next.Encode()); err != nil {
		t.Fatal(err)
	}
	return decisions
}

// entryIn runs, and returns the only decision on an allocation of a backend.
func (w *sequence) entryIn(t *testing.T, backend string) judge.Decision {
	t.Helper()
	for _, d := range w.run(t) {
		if d.Allocation.Backend == backend {
			return d
		}
	}
	t.Fatal("no decision on an allocation of " + backend)
	return judge.Decision{}
}

// kept fails the test if the allocation is an orphan, and goes if it is not.
func kept(t *testing.T, what string, d judge.Decision) {
	t.Helper()
	if d.Verdict == judge.Orphaned {
		t.Errorf("%s: %s %s (%s), first seen %v", what, d.Verdict, d.Reason, d.Note, d.FirstSeen)
	}
}

func goes(t *testing.T, what string, d judge.Decision) {
	t.Helper()
	if d.Verdict != judge.Orphaned {
		t.Errorf("%s: %s %s (%s), first seen %v, due %v", what, d.Verdict, d.Reason, d.Note, d.FirstSeen, d.Due)
	}
}

// censusOf returns a census of these pods that begins now.
func censusOf(pods ...census.Pod) census.Census { return census.New(time.Now(), pods, nil) }

// inventory lists the stores and the objects of the sequence.
func (w *sequence) inventory(t *testing.T) ipam.Inventory {
	t.Helper()
	return ipam.TakeInventory(t.Context(), w.backends, func(string) bool { return true }, w.objects)
}

// inventory lists the stores.
func inventory(t *testing.T, stores ...ipam.Backend) ipam.Inventory {
	t.Helper()
	return newSequence(stores...).inventory(t)
}

// A decision has the fields of a judge.Decision that tables compare.
type decision struct {
	Verdict judge.Verdict
	Reason  judge.Reason
	Note    string
}

// decisionOf returns those fields.
func decisionOf(d judge.Decision) decision { return decision{d.Verdict, d.Reason, d.Note} }

// early is how much a run may cut a grace period short, because CronJobs jitter.
func early(grace time.Duration) time.Duration {
	if grace < 5*time.Minute {
		return 0
	}
	return min(grace/60, 15*time.Second)
}

// equal fails the test if two values differ.
func equal[T any](t *testing.T, what string, got, want T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
