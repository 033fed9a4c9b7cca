package ledger

import "strings"

// A Place is where a run last saw a pod. The zero Place means that it is not known.
type Place struct {
	Node string

	// Boot is set if the pod hung there: it is the boot of the node then, or UnknownBoot.
	Boot string
}

// UnknownBoot stands for the boot of a node that does not report it.
const UnknownBoot = "?"

// String returns the stored form: no name of a node has a slash.
func (p Place) String() string {
	if p.Boot == "" {
		return p.Node
	}
	return p.Node + "/" + p.Boot
}

// placeOf returns the place of a stored form.
func placeOf(stored string) Place {
	stored, _ = strings.CutSuffix(stored, ofRestore)
	node, boot, _ := strings.Cut(stored, "/")
	return Place{node, boot}
}

// ofRestore ends the stored form of a place that a restore knows from its journal. Its key is
// homeKey, since a store may give what comes back another token.
const ofRestore = "//"
