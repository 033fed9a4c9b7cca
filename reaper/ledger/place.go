package ledger

import "strings"

// A Place is where a run last saw a pod. The zero Place means that it is not known.
type Place struct {
	Node string

	// Boot is set if the sandbox may outlive the pod there: it hung, or was a mirror. It is the
	// boot of the node then, or UnknownBoot. In the ledger of a node, it is the first boot in which a run
	// saw an allocation that is kept until the next boot.
	Boot string

	// Mirror is set if the pod was the mirror of a static pod.
	Mirror bool
}

// UnknownBoot stands for the boot of a node that does not report it.
const UnknownBoot = "?"

// String returns the stored form: no name of a node has a slash. Before the boot of a mirror, there
// are two.
func (p Place) String() string {
	switch {
	case p.Boot == "":
		return p.Node
	case p.Mirror:
		return p.Node + "//" + p.Boot
	}
	return p.Node + "/" + p.Boot
}

// placeOf returns the place of a stored form.
func placeOf(stored string) Place {
	stored, _ = strings.CutSuffix(stored, ofRestore)
	node, boot, _ := strings.Cut(stored, "/")
	boot, mirror := strings.CutPrefix(boot, "/")
	return Place{node, boot, mirror}
}

// ofRestore ends the stored form of a place that a restore knows from its journal. Its key is
// homeKey, since a store may give what comes back another token.
const ofRestore = "//"
