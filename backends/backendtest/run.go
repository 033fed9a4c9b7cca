package backendtest

import "testing"

// Run tests the backend over the stores that open returns, each of them new and
// empty. It takes little more than two seconds over a fast store: only time
// makes a warrant expire.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, c := range []struct {
		name  string
		check func(s *stage)
	}{
		{"an empty store lists nothing", emptyListing},
		{"every entry is listed once", completeListing},
		{"a listing can be left early", earlyEnd},
		{"a cancelled listing is an error", cancelledListing},
		{"an entry that is not understood is listed as such and stays", spoiled},
		{"a released entry is gone and no other is touched", releaseOne},
		{"many are released in one call", releaseMany},
		{"a second release finds nothing to do", releaseTwice},
		{"a released address can be reserved again", reserveAgain},
		{"the zero warrant is refused", zeroWarrant},
		{"an expired warrant is refused", expiredWarrant},
		{"nothing is written under a cancelled context", cancelledRelease},
		{"an entry that is gone already counts as released", goneAlready},
		{"an address that was given to another pod stays", givenAway},
		{"each warrant gets its own answer, in order", answers},
		{"an owner who came back before the write keeps its entry", returnedBefore},
		{"an owner who comes back in the midst keeps its entry", returnedMeanwhile},
		{"an owner who cannot be looked at keeps its entry", unknownMeanwhile},
		{"a release that was cut short can be finished", interruptedFinished},
		{"a release that was cut short can be taken back", interruptedMended},
		{"what others reserve and free meanwhile is not lost", concurrent},
		{"what one sandbox got is released together or not at all", bound},
		{"what a release left behind is cleaned up by later runs", unfinished},
		{"what was released can be put back as it was", restored},
		{"what is there already is not put back again", restoredAgain},
		{"what was given to somebody else is not put back", restoredTooLate},
		{"a record that is none is not put back", strangeRecord},
		{"nothing is put back under a cancelled context", cancelledRestore},
		{"an entry that was given away is not written down as the old one", changedBeforeRecord},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.check(&stage{T: t, store: open(t), pods: &Pods{}})
		})
	}
}
