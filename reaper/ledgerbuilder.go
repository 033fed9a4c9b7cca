package reaper

import "slices"

// A ledgerBuilder makes a ledger of entries in any order. Of several values for one key,
// the largest counts.
type ledgerBuilder struct {
	Ledger
	indices map[string]uint32 // in names, which are in the order of their addition
}

// newLedgerBuilder returns a builder with the salt and the figures of a ledger, and with
// room for as many entries as that has.
func newLedgerBuilder(like Ledger) *ledgerBuilder {
	b := &ledgerBuilder{indices: make(map[string]uint32)}
	b.salt, b.figures, b.doubt = like.salt, like.figures, like.doubt
	b.seen, b.restored = make(ledgerTable[int64], 0, len(like.seen)), make(ledgerTable[int64], 0, len(like.restored))
	b.nodes, b.graces = make(ledgerTable[uint32], 0, len(like.nodes)), make(ledgerTable[int32], 0, len(like.graces))
	return b
}

// addNode adds the node on which a pod was last seen.
func (b *ledgerBuilder) addNode(k ledgerKey, name string) {
	i, known := b.indices[name]
	if !known {
		i = uint32(len(b.names))
		b.names = append(b.names, name)
		b.indices[name] = i
	}
	b.nodes.add(k, i)
}

// addAll adds all entries of a ledger.
func (b *ledgerBuilder) addAll(l Ledger) {
	b.seen, b.restored = append(b.seen, l.seen...), append(b.restored, l.restored...)
	b.graces = append(b.graces, l.graces...)
	for _, e := range l.nodes {
		b.addNode(e.key, l.names[e.value])
	}
}

// ledger returns the ledger. Nothing can be added after it.
func (b *ledgerBuilder) ledger() Ledger {
	l := b.Ledger
	slices.Sort(l.names)
	ranks := make([]uint32, len(l.names))
	for rank, name := range l.names {
		ranks[b.indices[name]] = uint32(rank)
	}
	for i := range l.nodes {
		l.nodes[i].value = ranks[l.nodes[i].value]
	}
	l.seen, l.restored = l.seen.arranged(), l.restored.arranged()
	l.graces, l.nodes = l.graces.arranged(), l.nodes.arranged()
	return l
}
