package report

import (
	"cmp"
	"iter"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// Findings are what a run found, decided and did. Those about decisions are of its last round.
type Findings struct {
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
	Warnings    []string

	// HasTimes reports whether the times of a decision outlast the run.
	HasTimes func(*judge.Decision) bool

	// Brief leaves out the entries of what is plainly in use.
	Brief bool
}

// Done is what a run did about one allocation.
type Done struct {
	Outcome Outcome
	Err     error // why; nil if there is nothing to say
	Owned   bool  // it has an owner by now
}

// Make returns the report of a run. It is pure. With a selection, the report has the selected
// entries and those that the run wrote. The figures of a pool are those of all of its entries.
func Make(f Findings) Report {
	r := Report{
		APIVersion: policy.APIVersion,
		Kind:       "ReapReport",
		Run:        f.Run,
		Result:     Result{Refused: f.Refused},
		Backends:   backendsOf(f.Inventory),
		Layout:     Layout{Networks: slices.Clone(f.Layout.Networks), Pools: slices.Clone(f.Layout.Pools)},
		Entries:    []Entry{},
		Warnings:   f.Warnings,
	}
	r.Run.Stores = StoresOf(f.Inventory)
	wanted := make([]bool, 0, len(f.Earlier)+len(f.Verdicts.Decisions))
	before := make(map[ipam.PoolRef]int)
	for _, e := range f.Earlier {
		e.Earlier = true
		r.Entries, wanted = append(r.Entries, e), append(wanted, true)
		before[ipam.PoolRef{Backend: e.Backend, Name: e.Pool}]++
	}
	for i := range f.Verdicts.Decisions {
		if !f.omits(i) {
			e := f.entry(i)
			r.Entries, wanted = append(r.Entries, e), append(wanted, f.selects(i) || e.Outcome != Kept)
		}
	}
	for i := range r.Pools {
		p := &r.Pools[i]
		ref := ipam.PoolRef{Backend: p.Backend, Name: p.Name}
		p.AllocatedBefore += before[ref]
		p.ProtectedBy = f.ProtectedBy[ref]
	}
	r.tally(f.omitted(false))
	if !f.Selection.Everything() {
		r.narrow(f.Selection, wanted, f.omitted(true))
	}
	return r
}

// selects reports whether the report is about a decision.
func (f *Findings) selects(i int) bool { return f.Selected == nil || f.Selected[i] }

// omits reports whether a decision gets no entry.
func (f *Findings) omits(i int) bool { return f.Brief && f.Verdicts.Decisions[i].PlainlyInUse() }

// omitted yields the allocations in use that have no entry: all, or those that are selected.
func (f *Findings) omitted(selected bool) iter.Seq[*ipam.Allocation] {
	return func(yield func(*ipam.Allocation) bool) {
		for _, l := range f.Verdicts.InUse {
			if !yield(l.Allocation) {
				return
			}
		}
		for i := range f.Verdicts.Decisions {
			if f.omits(i) && (!selected || f.selects(i)) && !yield(f.Verdicts.Decisions[i].Allocation) {
				return
			}
		}
	}
}

// entry returns the entry of a decision.
func (f *Findings) entry(i int) Entry {
	d := &f.Verdicts.Decisions[i]
	done := f.Outcomes[i]
	e := EntryOf(d, done)
	if !f.HasTimes(d) {
		e.FirstSeen, e.Due = nil, nil
	}
	return e
}

// EntryOf returns the entry of a decision and of what was done. It leaves out zero times.
func EntryOf(d *judge.Decision, done Done) Entry {
	a := d.Allocation
	e := Entry{
		Backend: a.Backend, Pool: a.Pool, Key: a.Key, Network: a.Network,
		Owner:   a.Owner.Entry(),
		Verdict: d.Verdict, Reason: d.Reason, Rule: d.Rule, ChangedBy: d.ChangedBy, Leaked: d.Ownerless && !done.Owned, Note: d.Note, Evidence: d.Evidence, Outcome: cmp.Or(done.Outcome, Kept),
	}
	if a.IP.IsValid() {
		e.IP = a.IP.String()
	}
	if !a.Created.IsZero() {
		created := a.Created // the entry may outlive the inventory
		e.Created = &created
	}
	if !d.Due.IsZero() {
		firstSeen, due := d.FirstSeen, d.Due
		e.FirstSeen, e.Due = &firstSeen, &due
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
