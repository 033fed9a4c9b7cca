package reaper_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// A followed is a reaper.Follower whose store tests can change. Like an API server, it sends
// a bookmark to each watch that is a second old, when it looks for such watches: each 1.2 s.
// It ends a watch after 3 s. The zero followed is not good: see newFollowed.
type followed struct {
	reaper.Cluster
	pods *backendtest.Pods

	mu      sync.Mutex
	version uint64
	changes []reaper.PodChange
	moved   chan struct{} // is closed when there is another change, or a fault is over
	lists   int
	faults  faults
	watches atomic.Int64
}

// faults are what an API server may do wrong. The zero faults are none.
type faults struct {
	paused  bool          // no watch tells anything
	delay   time.Duration // of the answer to a list of all pods
	silent  bool          // it sends no bookmarks
	refuses bool          // no watch is allowed
	forgets int           // so many watches have expired
	broken  bool          // a watch ends with an error before the next change
	unknown bool          // changes have no version
	hangs   bool          // it does not tell its version
	stale   uint64        // its version is so much smaller
	doubles bool          // each watch tells the first of all changes again
}

// slowList is how long a list of all pods takes at least in a cluster whose pods are followed.
const slowList = reaper.Freshness/8 + time.Nanosecond

// newFollowed returns a cluster whose list takes so long that the pods are followed.
func newFollowed() *followed {
	pods := &backendtest.Pods{}
	addUnrelatedPods(pods, 10)
	return &followed{
		Cluster: pods, pods: pods, version: 10, moved: make(chan struct{}),
		faults: faults{delay: slowList},
	}
}

// write writes a pod.
func (f *followed) write(pod reaper.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods.Add(pod)
	f.version++
	f.changes = append(f.changes, reaper.PodChange{Version: f.version, Ref: pod.Ref, Pod: &pod})
	f.wake()
}

// remove deletes a pod.
func (f *followed) remove(ref reaper.PodRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods.Remove(ref)
	f.version++
	f.changes = append(f.changes, reaper.PodChange{Version: f.version, Ref: ref})
	f.wake()
}

// writeElse writes an object that is no pod.
func (f *followed) writeElse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
}

// fail changes the faults.
func (f *followed) fail(change func(*faults)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.faults)
	f.wake()
}

// wake is for callers that have the lock.
func (f *followed) wake() {
	close(f.moved)
	f.moved = make(chan struct{})
}

// listed returns how often all pods were listed, and forgets it.
func (f *followed) listed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.lists
	f.lists = 0
	return n
}

// now returns the faults of this moment.
func (f *followed) now() faults {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults
}

// sleep waits for some time. It reports false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// Pods implements reaper.Cluster.
func (f *followed) Pods(ctx context.Context) ([]reaper.Pod, error) {
	pods, _, err := f.PodsAt(ctx)
	return pods, err
}

// PodsAt implements reaper.Follower.
func (f *followed) PodsAt(ctx context.Context) ([]reaper.Pod, uint64, error) {
	f.mu.Lock()
	f.lists++
	pods, err := f.pods.Pods(ctx)
	version := f.version
	f.mu.Unlock()
	if !sleep(ctx, f.now().delay) {
		return nil, 0, ctx.Err()
	}
	return pods, version, err
}

// PodsVersion implements reaper.Follower.
func (f *followed) PodsVersion(ctx context.Context) (uint64, error) {
	if f.now().hangs {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version - f.faults.stale, nil
}

// WatchPods implements reaper.Follower.
func (f *followed) WatchPods(ctx context.Context, since uint64, tell func(reaper.PodChange) bool) error {
	f.watches.Add(1)
	switch now := f.now(); {
	case now.refuses:
		return fmt.Errorf("watch: %w", errForbidden)
	case now.forgets > 0:
		f.fail(func(s *faults) { s.forgets-- })
		return fmt.Errorf("watch: %w", reaper.ErrVersionExpired)
	}
	began := time.Now()
	told := since
	f.mu.Lock()
	again := f.changes
	f.mu.Unlock()
	if f.now().doubles && len(again) > 0 && !tell(again[0]) {
		return nil
	}
	for time.Since(began) < 3*time.Second {
		f.mu.Lock()
		changes, version, now, moved := f.changes, f.version, f.faults, f.moved
		f.mu.Unlock()
		for _, c := range changes {
			switch {
			case c.Version <= told || now.paused:
				continue
			case now.broken:
				return errConnection
			case now.unknown:
				c.Version = 0
			}
			if !tell(c) {
				return nil
			}
			told = c.Version
		}
		tick := time.Until(time.Now().Truncate(1200 * time.Millisecond).Add(1200 * time.Millisecond))
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tick):
			due := time.Since(began) >= time.Second && !now.paused && !now.silent && version > told
			if due && f.all(version) && !tell(reaper.PodChange{Version: version}) {
				return nil
			}
		}
	}
	return nil
}

// all reports whether the store is still at the version.
func (f *followed) all(version uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version == version
}
