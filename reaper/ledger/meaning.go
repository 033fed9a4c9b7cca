package ledger

import (
	"cmp"
	"slices"
)

// A Meaning says that a store may mean a node of the cluster by a name: the status of a pod on that node had an
// address that the store has for the pod under the name.
type Meaning struct {
	Backend string `json:"backend"`
	Name    string `json:"name"` // of a node, in the store; empty for any name
	Node    string `json:"node"` // of the cluster; empty for any node
	Seen    int64  `json:"seen"` // when a run last saw that, in seconds since 1970
}

// MaxMeanings is how many meanings a ledger keeps: with the longest names, half of what it has room for.
const MaxMeanings = 1000

// ArrangeMeanings returns the meanings in order, each once with the latest time. If there are more than
// MaxMeanings, any name in their stores may mean any node: to forget one could release an address in use.
func ArrangeMeanings(all []Meaning) []Meaning {
	arranged := arrangeMeanings(all)
	if len(arranged) <= MaxMeanings {
		return arranged
	}
	for i := range arranged {
		arranged[i].Name, arranged[i].Node = "", ""
	}
	return arrangeMeanings(arranged)
}

// arrangeMeanings is ArrangeMeanings for any number.
func arrangeMeanings(all []Meaning) []Meaning {
	order := func(a, b Meaning) int {
		return cmp.Or(cmp.Compare(a.Backend, b.Backend), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Node, b.Node), cmp.Compare(b.Seen, a.Seen))
	}
	same := func(a, b Meaning) bool {
		a.Seen = b.Seen
		return a == b
	}
	return slices.CompactFunc(slices.SortedFunc(slices.Values(all), order), same)
}

// WithMeanings returns the ledger with these meanings, too.
func (l Ledger) WithMeanings(more []Meaning) Ledger {
	l.Meanings = ArrangeMeanings(slices.Concat(l.Meanings, more))
	return l
}
