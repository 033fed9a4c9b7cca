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
// absent or failed may be back in the next run. It has the identity of each store outside the API
// server that was listed. It also keeps the restores that began after the
// given time and whose allocations no store has yet.
func NextLedger(before ledger.Ledger, decisions []Decision, c census.Census, inv ipam.Inventory, since time.Time) ledger.Ledger {
	placed := 0
	for i := range decisions {
		if decisions[i].LastSeen() != (ledger.Place{}) {
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
	for i := range decisions {
		decisions[i].remember(b)
	}
	b.KeepOthers(inv.Listed(), allocationsOf(decisions))
	b.KeepHolds(since, allocationsOf(decisions))
	return b.Ledger()
}

// WithHung returns the ledger with the places where pods hang, by these decisions. They are true
// even if the list of pods is incomplete.
func WithHung(l ledger.Ledger, decisions []Decision) ledger.Ledger {
	return l.WithPlaces(func(yield func(*ipam.Allocation, ledger.Place) bool) {
		for i := range decisions {
			if last := decisions[i].LastSeen(); last.Boot != "" && !yield(decisions[i].Allocation, last) {
				return
			}
		}
	})
}

// KnownTo reports whether the ledger has the time since which the allocation of the decision
// has been ownerless.
func (d *Decision) KnownTo(l ledger.Ledger) bool { return l.Knows(d.Allocation, d.present()) }

// LastSeen returns where the pod of the allocation was last seen; the zero Place if the store
// names that node, or if it is not known.
func (d *Decision) LastSeen() ledger.Place { return d.known.Value().last }

// remember adds what the ledger keeps of the decision.
func (d *Decision) remember(b *ledger.Builder) {
	a, known := d.Allocation, d.known.Value()
	if d.remembered {
		b.Seen(a, d.present(), d.FirstSeen)
	}
	if d.keepSeen {
		for _, present := range []bool{false, true} {
			if !d.remembered || present != d.present() {
				b.KeepSeen(a, present)
			}
		}
	}
	b.Place(a, known.last)
	b.Grace(a, known.grace)
	b.Restored(a, known.restored)
}

// present reports whether the named pod existed when the decision was made.
func (d *Decision) present() bool { return d.facts.Case(d.Allocation).present() }

// allocationsOf yields the allocations of the decisions.
func allocationsOf(decisions []Decision) iter.Seq[*ipam.Allocation] {
	return func(yield func(*ipam.Allocation) bool) {
		for i := range decisions {
			if !yield(decisions[i].Allocation) {
				return
			}
		}
	}
}
