package reaper

import (
	"slices"
	"time"
)

// next returns the ledger after these decisions. Of a store that was listed, it has the
// allocations that are ownerless and wait, and what is known of the pods of the others,
// and nothing else. Of any other store, it loses nothing: a store that is disabled,
// absent or failed may be back in the next run.
func (l Ledger) next(decisions []Decision, c Census, inv Inventory) Ledger {
	b := newLedgerBuilder(l)
	b.figures, b.doubt = c.figures(), doubt{}
	listed := inv.listed()
	decided := make(map[ledgerKey]bool) // of stores that were listed in part
	for i := range decisions {
		b.remember(&decisions[i], l)
		if a := decisions[i].Allocation; !listed[tagOf(a.Backend)] {
			l.salt.addKeys(decided, a)
		}
	}
	b.addAll(l.only(func(k ledgerKey) bool { return !listed[k.tag] && !decided[k] }))
	return b.ledger()
}

// stillHolding returns the ledger with the restores that the ledger before it has, that began
// after the given time, and whose places are empty: a restore writes into the ledger what it
// is about to put back.
func (l Ledger) stillHolding(before Ledger, decisions []Decision, since time.Time) Ledger {
	missing := make(map[ledgerKey]int64)
	for _, e := range before.restored {
		if _, known := l.restored.find(e.key); !known && ofSecond(e.value).After(since) {
			missing[e.key] = e.value
		}
	}
	if len(missing) == 0 { // a key costs time
		return l
	}
	for i := range decisions {
		delete(missing, l.salt.spotKey(decisions[i].Allocation))
	}
	l.restored = slices.Clip(l.restored)
	for k, at := range missing {
		l.restored.add(k, at)
	}
	l.restored = l.restored.arranged()
	return l
}

// remember adds one decision to the ledger, which follows the ledger before.
func (b *ledgerBuilder) remember(d *Decision, before Ledger) {
	a, known := d.Allocation, d.known
	if d.remember {
		b.seen.add(b.salt.seenKey(a, d.present()), toSecond(d.FirstSeen).Unix())
	}
	if d.keepSeen && len(before.seen) > 0 {
		for _, present := range []bool{false, true} {
			k := b.salt.seenKey(a, present)
			if at, known := before.seen.find(k); known && (!d.remember || present != d.present()) {
				b.seen.add(k, at)
			}
		}
	}
	if known.last != (place{}) {
		b.addNode(b.salt.idKey(a), known.last.String())
	}
	if known.grace > 0 {
		b.graces.add(b.salt.placeKey(a), int32((known.grace+time.Second-1)/time.Second))
	}
	if !known.restored.IsZero() {
		b.restored.add(b.salt.spotKey(a), toSecond(known.restored).Unix())
	}
}

// knows reports whether the ledger has the time since which the allocation of a decision
// has been ownerless.
func (l Ledger) knows(d *Decision) bool {
	_, known := l.seen.find(l.salt.seenKey(d.Allocation, d.present()))
	return known
}

// present reports whether the named pod existed when the decision was made.
func (d *Decision) present() bool { return d.facts.present(d.Allocation) }

// listed returns the tags of the stores that were listed completely.
func (inv Inventory) listed() map[backendTag]bool {
	tags := make(map[backendTag]bool)
	for _, l := range inv.Listings {
		if l.whole {
			tags[tagOf(l.Backend)] = true
		}
	}
	return tags
}
