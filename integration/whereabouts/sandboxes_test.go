package whereabouts_test

import (
	"testing"
	"time"
)

// Versions before 0.8 gave a pod that came back another address, and left the old entry. Such an
// entry may go while its pod lives, but only with proof that the pod shows another address of the
// same pool; and never within four minutes, because during an ADD the new entry looks like the old
// one.
//
// The pod shows addresses in an annotation, and its owner may write anything there. So the pool
// must prove that the other entry is newer: only versions since 0.8 name the interface.
const twoEntries = `{"1":{"id":"a","podref":"shop/web-0"},"2":{"id":"b","podref":"shop/web-0","ifname":"net1"}}`

// The reservation of the old entry stays as long as the pod lives. No look at the pod could tell
// whether it is about to adopt the address again: the pod exists before and after, but the
// tombstone protocol needs an owner that does not. The entry stays with it: without the entry, the
// address would be just as blocked, and every ADD would skip it.
func TestEntryOfAnOlderSandboxStaysWithItsReservation(t *testing.T) {
	f := newFixture(t)
	f.writePool("10.0.0.0-24", "10.0.0.0/24", twoEntries)
	f.writeReservation("10.0.0.1", "shop/web-0")
	f.writeReservation("10.0.0.2", "shop/web-0")
	f.playSteps(atOnce, []step{
		{at: 0, do: func(f *fixture) { f.runs("web-0", "10.0.0.2") }, want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 held SiblingKept kept",
			"10.0.0.0-24/2 10.0.0.2 web-0 inUse PodPresent kept",
			"10.0.0.1 10.0.0.1 web-0 inUse PodPresent kept",
			"10.0.0.2 10.0.0.2 web-0 inUse PodPresent kept",
		}},
		{at: 4 * time.Minute, want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 held SiblingKept kept",
			"10.0.0.0-24/2 10.0.0.2 web-0 inUse PodPresent kept",
			"10.0.0.1 10.0.0.1 web-0 inUse PodPresent kept",
			"10.0.0.2 10.0.0.2 web-0 inUse PodPresent kept",
		}},
		{at: 5 * time.Minute, do: func(f *fixture) {
			f.must(f.DeletePod(f.Context(), shop, "web-0"))
		}, want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent released",
			"10.0.0.0-24/2 10.0.0.2 web-0 orphan PodAbsent released",
			"10.0.0.1 10.0.0.1 web-0 orphan PodAbsent released",
			"10.0.0.2 10.0.0.2 web-0 orphan PodAbsent released",
		}},
	})
}
