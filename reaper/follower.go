package reaper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// How the pods are followed.
const (
	probeEvery = 200 * time.Millisecond // how often the version of the store is asked for
	watchEvery = 900 * time.Millisecond // how often a watch is opened
	stallAfter = 5 * time.Second        // without a look, Confirm does not wait for one any more
	maxRelists = 3

	// How old a look may be that is given to Confirm. In a cluster where no pod changes, there
	// is one with each bookmark: each second or a quarter more. The rest of Freshness is for
	// the write.
	shareFollowed = Freshness * 5 / 8
)

// A follower keeps an index of all pods current, so that a look at all of them needs no
// list. A list of 150,000 pods takes longer than a warrant is valid.
//
// It begins with the list of the census, which has a version, and applies the changes that
// a watch tells after that version. Beside the watch it asks the store for its version
// again and again. An answer to a question of time t is at least the version of every change
// before t. So as soon as the index is at that version or a later one, the index has every
// pod that existed at t and still exists: a look has been made that began at t.
//
// The index is at version v when a watch has told a change or a bookmark of version v: it
// tells all changes, in the order of the store. The next watch goes on from v. What can go
// wrong ends in no look, and never in a false one:
//
//   - A watch is slow, hangs or breaks, or another API server with an older cache answers:
//     the index stays at an old version, and no later question is answered by it.
//   - A change is told twice or comes late: its version is not above that of the index, and
//     the change is ignored.
//   - A change cannot be read: the watch ends before it, and the index stays before it.
//   - The API server has forgotten the changes: the pods are listed again.
//   - A version is below an earlier one, as after the restore of a backup, or is unknown:
//     the follower fails, and all its looks with it.
//
// So it believes the API server's watch as a list believes the cache from which the API
// server answers it. A follower is safe for concurrent use.
type follower struct {
	cluster Follower
	census  Census // of the first look
	once    sync.Once
	cancel  context.CancelFunc // nil before it begins
	loops   sync.WaitGroup

	mu      sync.RWMutex
	index   population // with changes
	version uint64     // of the index
	looked  time.Time  // when the latest look began; zero before the first
	asked   []probe    // those that the index has not reached, oldest first
	stalls  time.Time  // when nothing waits for a look any more; zero while pods are listed
	moved   chan struct{}
	failed  error
}

// A probe is an answer to the question which version the store has.
type probe struct {
	began   time.Time
	version uint64
}

// newFollower returns a follower that begins with the list of a census; nil if the cluster
// does not tell changes, or the version of the list is not known.
func newFollower(cluster Cluster, census Census) *follower {
	f, ok := cluster.(Follower)
	if !ok || census.version == 0 {
		return nil
	}
	return &follower{
		cluster: f, census: census, moved: make(chan struct{}),
		index: census.following(), version: census.version,
	}
}

// begin starts to follow, once.
func (f *follower) begin(ctx context.Context) {
	f.once.Do(func() {
		f.stalls = time.Now().Add(stallAfter)
		ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
		f.loops.Go(func() { f.watch(ctx) })
		f.loops.Go(func() { f.probe(ctx) })
	})
}

// end stops to follow, and waits until no request is under way. There is no look after it.
func (f *follower) end() {
	f.once.Do(func() {})
	f.fail(errors.New("the release is over"))
	f.loops.Wait()
}

// look calls judge with a census that began after the given time, and is not older than
// shareFollowed. The census is valid until judge returns. look waits for such a census, and
// reports false if none comes. It does not wait if none came for stallAfter.
func (f *follower) look(ctx context.Context, after time.Time, judge func(Census)) bool {
	f.begin(ctx)
	for {
		looked, moved, patience := f.try(after, judge)
		if looked || patience <= 0 {
			return looked
		}
		timer := time.NewTimer(patience)
		select {
		case <-moved:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return false
		}
	}
}

// try is look without a wait. If there is no such census yet, it returns a channel that is
// closed when there may be one, and for how long to wait for it.
func (f *follower) try(after time.Time, judge func(Census)) (looked bool, moved <-chan struct{}, patience time.Duration) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	switch {
	case f.failed != nil:
		return false, nil, 0
	case f.looked.After(after) && time.Since(f.looked) <= shareFollowed:
		census := f.census
		census.population, census.fresh = f.index, nil
		census.began = f.looked
		judge(census)
		return true, nil, 0
	case f.stalls.IsZero():
		return false, f.moved, time.Hour
	}
	return false, f.moved, time.Until(f.stalls)
}

// wake wakes all that wait for a look.
func (f *follower) wake() {
	close(f.moved)
	f.moved = make(chan struct{})
}

// fail ends the follower. There is no look after it.
func (f *follower) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.giveUp(err)
}

// giveUp is fail for a caller that has the lock.
func (f *follower) giveUp(err error) {
	if f.failed != nil {
		return
	}
	f.failed = err
	if f.cancel != nil {
		f.cancel()
	}
	f.wake()
}

// explain adds to the error of a list why the pods are not followed, if the follower failed.
func (f *follower) explain(err error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.failed == nil {
		return err
	}
	return fmt.Errorf("%w; they are not followed, because: %s", err, f.failed.Error())
}
