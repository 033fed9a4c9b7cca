package backendtest

import (
	"slices"
	"testing"
)

// A check tests one property of a backend, on a new store.
type check struct {
	name  string
	check func(s *fixture)
}

var listChecks = []check{
	{"an empty store lists nothing", emptyListing},
	{"every entry is listed once", completeListing},
	{"a listing can be left early", earlyEnd},
	{"a cancelled listing is an error", cancelledListing},
	{"an unreadable entry is listed as such and stays", unreadableEntry},
	{"an object that cannot be decoded protects what it may name, and hides nothing", obscureObject},
}

var releaseChecks = []check{
	{"a released entry is gone and no other is touched", releaseOne},
	{"a second release finds nothing to do", releaseTwice},
	{"a released address can be allocated again", allocateAgain},
	{"an expired warrant is refused", expiredWarrant},
	{"nothing is written under a cancelled context", cancelledRelease},
	{"an owner who came back before the write keeps its entry", returnedBefore},
	{"on a node, an address that another sandbox has is kept", attachedElsewhere},
	{"an owner whose state is unknown keeps its entry", unknownMeanwhile},
	{"an interrupted release can be undone", interruptedMended},
	{"writes of the plugin during a release are not lost", concurrent},
	{"each warrant of several pools gets its own answer, in order", releaseAcross},
	{"all owners who come back during the release keep their entries", allReturnedMeanwhile},
	{"an owner whose state is unknown keeps no other entry", oneUnknownMeanwhile},
	{"all releases that were interrupted together can be finished", allInterrupted},
}

var otherChecks = []check{
	{"a group is released together or not at all", group},
	{"later runs remove the empty handle of an unfinished release", unfinished},
	{"a released entry can be restored", restored},
	{"an address that another pod gets during a restore is not restored", takenMeanwhile},
	{"what is restored is marked for its owner alone", markedOwner},
	{"a bad record is not restored", badRecord},
	{"nothing is restored under a cancelled context", cancelledRestore},
	{"a restore that may write no more says which records are back", endedPermit},
	{"an entry that another pod got is not recorded as the old one", changedBeforeRecord},
}

// Run tests a backend. It calls open once for each check, and each Store must be
// new and empty. Over a fast store, Run takes little more than two seconds: only
// time makes a warrant expire.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, c := range slices.Concat(listChecks, releaseChecks, otherChecks) {
		t.Run(c.name, func(t *testing.T) {
			c.check(&fixture{T: t, store: open(t), pods: &Pods{}})
		})
	}
}
