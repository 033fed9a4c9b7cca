package report

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// Results are what a run found, decided and did. Those about decisions are of its last round.
type Results struct {
	Run       RunInfo
	Inventory ipam.Inventory
	Layout    Layout // of the inventory
	Verdicts  judge.Verdicts
	Selection judge.Selection
	Selected  []bool // by the decisions; nil if all are

	// Outcomes are by the decisions. What has none was kept.
	Outcomes map[int]Done

	Refused     []judge.Refusal         // the limits that refuse the plan
	ProtectedBy map[ipam.PoolRef]string // see PoolReport.ProtectedBy
	Earlier     []Entry                 // what earlier rounds released
	Endpoints   map[int]string          // the endpoints that have the addresses of gone pods, by the decisions
	Found       []Finding               // what is wrong with addresses that pods show
	Comparison  *Comparison             // see Report.Comparison
	Warnings    []string

	Living *census.Census // see Report.Living

	// Nodes are the names of the cluster's nodes; nil if they are unknown.
	Nodes []string

	// HasTimes reports whether the times of a decision outlast the run.
	HasTimes func(*judge.Decision) bool

	// Brief leaves out the entries of what is plainly in use.
	Brief bool
}

// Done is what a run did about one allocation.
type Done struct {
	Outcome Fate
	Err     error // why; nil if there is nothing to say
	Owned   bool  // it has an owner by now
}

// Make returns the report of a run. It is pure. With a selection, the report has the selected
// entries and those that the run wrote. The figures of a pool are those of all of its entries.
func Make(f Results) Report {
	r := Report{
		APIVersion: policy.APIVersion,
		Kind:       "ReapReport",
		Run:        f.Run,
		Result:     Result{Refused: f.Refused},
		Backends:   backendsOf(f.Inventory),
		Layout:     Layout{Networks: slices.Clone(f.Layout.Networks), Pools: slices.Clone(f.Layout.Pools), Rangeless: f.Layout.Rangeless},
		Entries:    []Entry{},
		Findings:   f.Layout.Selected(f.Found, f.Selection),
		Comparison: f.Comparison,
		Warnings:   f.Warnings,
		Living:     f.Living,
	}
	r.Run.Stores = StoresOf(f.Inventory)
	entries := len(f.Earlier)
	for i := range f.Verdicts.Decisions {
		if !f.leavesOut(&f.Verdicts.Decisions[i]) {
			entries++
		}
	}
	r.Entries = slices.Grow(r.Entries, entries)
	t := newTally(&r, &f)
	for _, e := range f.Earlier {
		t.add(e, true)
	}
	waits := f.Verdicts.Waits()
	for i := range f.Verdicts.Decisions {
		d := &f.Verdicts.Decisions[i]
		wanted := f.Selected == nil || f.Selected[i]
		if f.leavesOut(d) {
			t.addInUse(d.Allocation, wanted)
			continue
		}
		e := EntryOf(d, f.Outcomes[i])
		e.Wait = waits[i]
		if !f.HasTimes(d) {
			e.FirstSeen, e.Due = nil, nil
		}
		if name := f.Endpoints[i]; name != "" {
			note := "its WorkloadEndpoint " + e.Owner.Namespace + "/" + name + " still has the address: remove it with calicoctl delete workloadendpoint"
			e.Endpoint, e.Note = name, strings.TrimPrefix(e.Note+"; "+note, "; ")
		}
		t.add(e, wanted || e.Outcome != Kept)
	}
	for _, l := range f.Verdicts.InUse {
		t.addInUse(l.Allocation, true)
	}
	t.finish()
	return r
}

// leavesOut reports whether a decision gets no entry.
func (f *Results) leavesOut(d *judge.Decision) bool { return f.Brief && d.PlainlyInUse() }

// EntryOf returns the entry of a decision and of what was done. It leaves out zero times.
func EntryOf(d *judge.Decision, done Done) Entry {
	a := d.Allocation
	e := Entry{
		Backend: a.Backend, Pool: a.Pool, Key: a.Key, Network: a.Network,
		Owner:   a.Owner.Entry(),
		Verdict: d.Verdict, Reason: d.Reason, Rule: d.Rule, ChangedBy: d.ChangedBy, Leaked: d.Leaks() && !done.Owned, ByName: d.ByName, Adoptable: !a.NeverAdopted(), Note: d.Note, Evidence: d.Evidence, Outcome: cmp.Or(done.Outcome, Kept),
	}
	if a.IP.IsValid() {
		e.IP = a.IP.String()
	}
	if !a.Created.IsZero() {
		created := a.Created // the entry may outlive the inventory
		e.Created = &created
	}
	if due := d.Ripens(); !due.IsZero() { // only what has one allocates it
		e.Due, e.Ripe = &due, due
	}
	if e.Due != nil && !d.FirstSeen.IsZero() {
		first := d.FirstSeen
		e.FirstSeen = &first
	}
	if done.Err != nil {
		e.Error = printable.Error(done.Err)
	}
	return e
}

// backendsOf returns what the report says about the backends of an inventory, without counts.
func backendsOf(inv ipam.Inventory) []BackendReport {
	backends := make([]BackendReport, 0, len(inv.Listings))
	for _, l := range inv.Listings {
		b := BackendReport{Name: l.Backend, Status: l.Status, Message: l.Message}
		for _, err := range l.Errors {
			b.Failures = append(b.Failures, printable.Error(err))
		}
		for _, err := range l.Undecoded {
			if object, is := errors.AsType[*ipam.ObjectError](err); is && object.NotListed != nil {
				b.NotListed = object.NotListed
				continue
			}
			b.Undecoded = append(b.Undecoded, printable.Error(err))
		}
		backends = append(backends, b)
	}
	return backends
}

// StoresOf returns where the stores of the inventory are, for RunInfo; nil if there is only one place
// for each.
func StoresOf(inv ipam.Inventory) (stores map[string]string) {
	for _, l := range inv.Listings {
		if l.Where == "" {
			continue
		}
		if stores == nil {
			stores = make(map[string]string)
		}
		stores[l.Backend] = l.Where
	}
	return stores
}
