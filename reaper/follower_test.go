package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// A followedLook has the orphans of a plan whose pods are followed.
type followedLook struct {
	*testing.T
	cluster   *followed
	orphans   []reaper.Orphan
	confirmer *reaper.Confirmer
}

// newFollowedLook makes the plan for allocations that are all orphans. The first one names
// no pod. The Confirmer is for a plan of that many orphans.
func newFollowedLook(t *testing.T, cluster *followed, due int) followedLook {
	t.Helper()
	return newLookThrough(t, cluster, cluster, due)
}

// newLookThrough is newFollowedLook. The Confirmer reaches the cluster through another one.
func newLookThrough(t *testing.T, through reaper.Cluster, cluster *followed, due int) followedLook {
	t.Helper()
	as := allocations(2)
	as[0].Owner = reaper.Owner{Sandbox: "another"}
	terms := impatientWithUnnamed()
	inv := inventory(t, fixedStore{poolOf(as...)})
	census, err := reaper.TakeCensus(t.Context(), through, reaper.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	orphans := reaper.MakePlan(reaper.Judge(noon, terms, inv, census, reaper.Ledger{})).Orphans()
	if len(orphans) != len(as) {
		t.Fatalf("%d orphans, want %d", len(orphans), len(as))
	}
	cluster.listed()
	l := followedLook{t, cluster, orphans, reaper.NewConfirmer(through, census, due)}
	t.Cleanup(l.confirmer.Close)
	return l
}

// impatientWithUnnamed releases at once, also what names no pod.
func impatientWithUnnamed() policy.Policy {
	p := newHarness().policy
	p.Pods.Unnamed = policy.Release
	return p
}

// confirmed fails the test unless both orphans get valid warrants.
func (l followedLook) confirmed() []reaper.Warrant {
	l.Helper()
	ws, errs := l.confirmer.Confirm(l.Context(), l.orphans)
	for i, w := range ws {
		if _, err := w.Allocation(); err != nil || errs[i] != nil {
			l.Fatalf("orphan %d: %v, %v, want a valid warrant", i, errs[i], err)
		}
	}
	return ws
}

// inBubble runs a test with a fake clock.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// A run does not wait for its first look: the pods are followed while it writes the ledger and
// the journal. Where few are due, and a pod is named, they are not followed.
func TestPodsAreFollowedFromBeforeTheJournal(t *testing.T) {
	for _, due := range []int{50, 51} {
		inBubble(t, fmt.Sprint(due, " due"), func(t *testing.T) {
			cluster := newFollowed()
			var written, released time.Time
			h := acrossHarness(t, due, func(_ context.Context, ws []reaper.Warrant, _ int) []error {
				released = time.Now()
				return make([]error, len(ws))
			})
			h.change = func(o *reaper.Options) { o.Cluster = cluster }
			h.journal.OnWrite(func() error {
				cluster.writeElse() // a look needs a bookmark of its version
				time.Sleep(3 * time.Second)
				written = time.Now()
				return nil
			})
			equal(t, "released", h.run(t).Summary.Released, due)
			if waited := released.Sub(written); waited > 300*time.Millisecond {
				t.Errorf("the first release came %v after the journal, want at once", waited)
			}
			equal(t, "watches", cluster.watches.Load() > 0, due > 50)
		})
	}
}

// Promise 4. Also where a list takes longer than a warrant is valid.
func TestLargeClusterIsFollowed(t *testing.T) {
	for _, due := range []int{1, 1000} {
		inBubble(t, fmt.Sprint(due, " due"), func(t *testing.T) {
			cluster := newFollowed()
			cluster.fail(func(f *faults) { f.delay = 20 * time.Second })
			l := newFollowedLook(t, cluster, due)
			for range 20 {
				l.confirmed()
				cluster.writeElse()
				time.Sleep(300 * time.Millisecond)
			}
			equal(t, "lists", cluster.listed(), 0)
		})
	}
}

// A list that was quick in the census is sooner than a look at followed pods. It becomes slow
// here, and from then on the pods are followed (promise 4).
func TestQuickListIsPreferredUntilItIsSlow(t *testing.T) {
	for _, due := range []int{1, 1000} {
		inBubble(t, fmt.Sprint(due, " due"), func(t *testing.T) {
			cluster := newFollowed()
			cluster.fail(func(f *faults) { f.delay = slowList - 1 })
			l := newFollowedLook(t, cluster, due)
			began := time.Now()
			l.confirmed()
			equal(t, "time", time.Since(began), slowList-1)
			equal(t, "lists", cluster.listed(), 1)
			equal(t, "watches", cluster.watches.Load(), 0)

			cluster.fail(func(f *faults) { f.delay = 20 * time.Second })
			l.confirmer.Forget()
			if _, errs := l.confirmer.Confirm(t.Context(), l.orphans); !errors.Is(errs[0], reaper.ErrAgain) {
				t.Errorf("the orphan without a pod: %v, want ErrAgain", errs[0])
			}
			equal(t, "lists", cluster.listed(), 1)
			for range 3 {
				l.confirmer.Forget()
				cluster.writeElse()
				l.confirmed()
			}
			equal(t, "lists", cluster.listed(), 0)
		})
	}
}

// Promise 1, 4. Each of these pods appears right before the second look.
func TestFollowedPodIsSeen(t *testing.T) {
	ip := allocations(1)[0].IP
	for name, pod := range map[string]reaper.Pod{
		"it shows the address": showing(other, ip),
		"it shows the sandbox": {Ref: other, Sandbox: "another"},
		"it hides an address":  {Ref: other, AddressUnknown: true},
		"it shows too much":    {Ref: other, AddressUnknown: true, TooMuch: true},
		"it changed":           showing(reaper.PodRef{Namespace: "crowd", Name: "7"}, ip),
	} {
		inBubble(t, name, func(t *testing.T) {
			l := newFollowedLook(t, newFollowed(), 1)
			l.confirmed()
			l.cluster.write(pod)
			l.confirmer.Forget()
			ws, errs := l.confirmer.Confirm(t.Context(), l.orphans)
			if !errors.Is(errs[0], reaper.ErrReturned) && !errors.Is(errs[0], reaper.ErrKept) {
				t.Errorf("%v, want it kept", errs[0])
			}
			if _, err := ws[0].Allocation(); err == nil {
				t.Error("it has a warrant")
			}
			l.cluster.remove(pod.Ref)
			l.confirmer.Forget()
			ws, errs = l.confirmer.Confirm(t.Context(), l.orphans)
			if _, err := ws[0].Allocation(); (err != nil || errs[0] != nil) && !pod.TooMuch {
				t.Errorf("once the pod is gone: %v, %v", err, errs[0])
			}
			equal(t, "lists", l.cluster.listed(), 0)
		})
	}
}

// Promise 1, 2, 4. A pod appears that the watch does not tell of. What is released then rests
// on a list, which has the pod; where that is too slow, nothing is.
func TestNothingIsReleasedByADoubtfulIndex(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault func(*faults)
		said  string // of a list that is too slow
	}{
		{"the watch hangs", func(f *faults) { f.paused = true }, ""},
		{"the watch is forbidden", func(f *faults) { f.refuses = true }, "watch pods: watch: refused: pods is forbidden"},
		{"the watch breaks", func(f *faults) { f.broken = true }, ""},
		{"a change has no version", func(f *faults) { f.unknown = true }, "a change of a pod has no version"},
		{"the version is not told", func(f *faults) { f.hangs = true }, ""},
		{"the version goes back", func(f *faults) { f.stale = 5 }, "the version of the store was 1"},
	} {
		for _, slow := range []bool{false, true} {
			inBubble(t, fmt.Sprintf("%s, slow list: %v", tt.name, slow), func(t *testing.T) {
				cluster := newFollowed()
				l := newFollowedLook(t, cluster, 1)
				cluster.fail(tt.fault)
				cluster.write(showing(other, l.orphans[0].Allocation().IP))
				if slow {
					cluster.fail(func(f *faults) { f.delay = 2 * time.Second })
				}
				ws, errs := l.confirmer.Confirm(t.Context(), l.orphans[:1])
				want := reaper.ErrReturned
				if slow {
					want = reaper.ErrAgain
				}
				refused(t, ws[0], errs[0], want)
				if slow && !strings.Contains(fmt.Sprint(errs[0]), tt.said) {
					t.Errorf("error %q, want %q", errs[0], tt.said)
				}
			})
		}
	}
}

// Promise 1. What a watch tells again is older than the index.
func TestChangeThatIsToldAgainIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newFollowed()
		l := newFollowedLook(t, cluster, 1)
		cluster.write(reaper.Pod{Ref: other})
		cluster.write(showing(other, l.orphans[0].Allocation().IP))
		cluster.fail(func(f *faults) { f.doubles = true })
		for range 30 {
			ws, errs := l.confirmer.Confirm(t.Context(), l.orphans[:1])
			refused(t, ws[0], errs[0], reaper.ErrReturned)
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// Promise 1, 2. Of two pods that show one sandbox, one goes.
func TestSandboxOfTwoPodsStaysShown(t *testing.T) {
	owner := reaper.Owner{Sandbox: "another"}
	a := webAllocation()
	a.Owner = owner
	pods := []reaper.Pod{{Ref: web, Sandbox: "another"}, {Ref: other, Sandbox: "another"}}
	inv := inventory(t, fixedStore{poolOf(a)})
	written := []reaper.PodChange{{Ref: web, Pod: &pods[0]}, {Ref: other, Pod: &pods[1]}}
	gone := []reaper.PodChange{{Ref: web}, {Ref: other}}
	for _, tt := range []struct {
		name string
		gone []reaper.PodChange
		want reaper.Verdict
	}{{"the first", gone[:1], reaper.InUse}, {"the second", gone[1:], reaper.InUse}, {"both", gone, reaper.Orphaned}} {
		for name, census := range map[string]reaper.Census{
			"listed": censusOf(pods...).After(tt.gone...), "written later": censusOf().After(slices.Concat(written, tt.gone)...),
		} {
			got := reaper.Judge(noon, impatientWithUnnamed(), inv, census, reaper.Ledger{})[0]
			equal(t, tt.name+", "+name, got.Verdict, tt.want)
		}
	}
}

// Promise 4. A watch that hangs costs no more than 5 s, once.
func TestFollowerThatStallsIsNotWaitedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newFollowed()
		l := newFollowedLook(t, cluster, 1)
		cluster.fail(func(f *faults) { f.paused, f.delay = true, 0 })
		cluster.writeElse()
		for _, want := range []time.Duration{5 * time.Second, 0, 0} {
			began := time.Now()
			l.confirmed()
			equal(t, "time", time.Since(began), want)
			time.Sleep(2 * time.Second)
		}
		equal(t, "lists", cluster.listed(), 3)
		cluster.fail(func(f *faults) { f.paused = false })
		time.Sleep(3 * time.Second)
		l.confirmed()
		equal(t, "lists after it goes on", cluster.listed(), 0)
	})
}

// Promise 4. A list of the follower may take as long as it takes.
func TestFollowerListsAgainIfItsVersionHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newFollowed()
		l := newFollowedLook(t, cluster, 1)
		cluster.fail(func(f *faults) { f.forgets, f.delay = 1, 40*time.Second })
		cluster.write(showing(other, l.orphans[0].Allocation().IP))
		ws, errs := l.confirmer.Confirm(t.Context(), l.orphans[:1])
		refused(t, ws[0], errs[0], reaper.ErrReturned)
		cluster.remove(other)
		l.confirmer.Forget()
		l.confirmed()
		equal(t, "lists", cluster.listed(), 1)
	})
}

// Promise 2. An empty list is not believed where the census had pods.
func TestFollowerDoesNotBelieveAnEmptyList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newFollowed()
		l := newFollowedLook(t, cluster, 1)
		for i := range 10 {
			cluster.pods.Remove(reaper.PodRef{Namespace: "crowd", Name: fmt.Sprint(i)})
		}
		cluster.writeElse()
		cluster.fail(func(f *faults) { f.forgets = 1 })
		ws, errs := l.confirmer.Confirm(t.Context(), l.orphans[:1])
		refused(t, ws[0], errs[0], reaper.ErrAgain)
	})
}

// Promise 4. It does not list for ever.
func TestFollowerListsAFewTimesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newFollowed()
		l := newFollowedLook(t, cluster, 1)
		cluster.fail(func(f *faults) { f.forgets = 1000 })
		for range 20 {
			cluster.writeElse()
			l.confirmer.Forget()
			l.confirmed()
			time.Sleep(time.Second)
		}
		cluster.listed()
		cluster.fail(func(f *faults) { f.delay = 2 * time.Second })
		l.confirmer.Forget()
		_, errs := l.confirmer.Confirm(t.Context(), l.orphans[:1])
		if !errors.Is(errs[0], reaper.ErrAgain) || !strings.Contains(errs[0].Error(), "the version has expired") {
			t.Errorf("%v, want ErrAgain and the reason", errs[0])
		}
		equal(t, "lists", cluster.listed(), 1)
	})
}

// Promise 1. Between the first look and Renew, a pod appears.
func TestRenewFollowsThePodsFromItsCallOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFollowedLook(t, newFollowed(), 1)
		w := l.confirmed()[0]
		if _, err := w.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.cluster.write(showing(other, l.orphans[0].Allocation().IP))
		_, err := w.Renew(t.Context())
		refused(t, reaper.Warrant{}, err, reaper.ErrReturned)
		equal(t, "lists", l.cluster.listed(), 0)
	})
}

// A leaving cluster counts the watches. Each takes a moment to end.
type leaving struct {
	*followed
	open *atomic.Int32
}

func (l leaving) WatchPods(ctx context.Context, since uint64, tell func(reaper.PodChange) bool) error {
	l.open.Add(1)
	defer l.open.Add(-1)
	err := l.followed.WatchPods(ctx, since, tell)
	time.Sleep(10 * time.Millisecond)
	return err
}

// The requests end with the release, which waits for their ends.
func TestNothingIsFollowedAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := newFollowed()
		through := leaving{base, new(atomic.Int32)}
		l := newLookThrough(t, through, base, 1)
		l.confirmed()
		l.confirmer.Close()
		equal(t, "watches", through.open.Load(), 0)
		l.confirmed()
		equal(t, "lists", l.cluster.listed(), 1)
	})
}
