package judge

import (
	"iter"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// NextLedger returns the ledger after these decisions. For a store that was listed, it has the
// allocations that are ownerless and wait, and what is known about the pods of the others,
// and nothing else. For any other store, it loses nothing: a store that is disabled,
// absent or failed may be back in the next run. Of a store that was listed in part, it loses nothing
// that may be in a pool that could not be read. It has what stores mean by names of nodes. It has the identity of each store outside the API
// server that was listed. It also keeps the restores that began after the
// given time and whose allocations no store has yet.
func NextLedger(before ledger.Ledger, v Verdicts, c census.Census, inv ipam.Inventory, since time.Time) ledger.Ledger {
	placed := 0
	for _, known := range v.remembered() {
		if known.last != (ledger.Place{}) {
			placed++
		}
	}
	b := ledger.NewBuilder(before)
	b.Expect(placed)
	b.Believe(c.Figures())
	for _, l := range inv.Listings {
		if l.Outside != nil {
			b.Store(l.Backend, l.Outside.ID)
		}
	}
	if v.facts != nil {
		b.Mean(v.facts.nextMeanings(inv))
	}
	for a, known := range v.remembered() {
		b.Place(a, known.last)
		b.Grace(a, known.grace)
		b.Restored(a, known.restored)
	}
	for i := range v.Decisions {
		v.Decisions[i].rememberSeen(b)
	}
	b.KeepOthers(inv.Listings, v.allocations())
	b.KeepHolds(since, v.allocations())
	return b.Ledger()
}

// WithHung returns the ledger with the places where pods hang, and what stores mean by names of nodes, by
// these verdicts. They are true even if the list of pods is incomplete.
func WithHung(l ledger.Ledger, v Verdicts) ledger.Ledger {
	if v.facts != nil {
		l = l.WithMeanings(v.facts.meanings)
	}
	return l.WithPlaces(func(yield func(*ipam.Allocation, ledger.Place) bool) {
		for a, known := range v.remembered() {
			if known.last.Boot != "" && !yield(a, known.last) {
				return
			}
		}
	})
}

// KnownTo reports whether the ledger has the time of the decision: since when its allocation has been
// ownerless, if it waits, or has waited.
func (d *Decision) KnownTo(l ledger.Ledger) bool {
	waited := d.Verdict == Orphaned && d.remembered
	return d.Verdict != Suspected && d.Reason != TooYoung && !waited || l.Knows(d.Allocation, d.present)
}

// LastSeen returns where the pod of the allocation was last seen; the zero Place if the store
// names that node, or if it is not known.
func (d *Decision) LastSeen() ledger.Place { return d.known.Value().last }

// rememberSeen adds since when the allocation of the decision has been ownerless.
func (d *Decision) rememberSeen(b *ledger.Builder) {
	a := d.Allocation
	if d.remembered {
		b.Seen(a, d.present, d.FirstSeen)
	}
	if !d.keepSeen {
		return
	}
	for _, present := range []bool{false, true} {
		if !d.remembered || present != d.present {
			b.KeepSeen(a, present)
		}
	}
}

// remembered yields all allocations with what the ledger remembers about them.
func (v Verdicts) remembered() iter.Seq2[*ipam.Allocation, knowledge] {
	return func(yield func(*ipam.Allocation, knowledge) bool) {
		for i := range v.Decisions {
			if d := &v.Decisions[i]; !yield(d.Allocation, d.known.Value()) {
				return
			}
		}
		for _, l := range v.InUse {
			if !yield(l.Allocation, l.known.Value()) {
				return
			}
		}
	}
}

// allocations yields all allocations.
func (v Verdicts) allocations() iter.Seq[*ipam.Allocation] {
	return func(yield func(*ipam.Allocation) bool) {
		for a := range v.remembered() {
			if !yield(a) {
				return
			}
		}
	}
}
