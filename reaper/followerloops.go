package reaper

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// watch keeps the index current. Each watch ends at its first bookmark, because the API
// server sends one soon after the beginning of a watch, and then none for a long time.
func (f *follower) watch(ctx context.Context) {
	for relists := 0; ctx.Err() == nil; {
		bookmark := false
		err := f.cluster.WatchPods(ctx, f.at(), func(c PodChange) bool {
			bookmark = c.Ref == PodRef{}
			return f.told(c) && !bookmark
		})
		switch {
		case errors.Is(err, ErrVersionExpired) && relists < maxRelists:
			relists++
			f.relist(ctx)
		case errors.Is(err, ErrVersionExpired), errors.Is(err, ErrRefused):
			f.fail(fmt.Errorf("watch pods: %w", err))
		case !bookmark:
			pause(ctx, watchAgain)
		}
	}
}

// probe asks for the version of the store again and again.
func (f *follower) probe(ctx context.Context) {
	var least uint64
	for ctx.Err() == nil {
		least = max(least, f.at())
		p := probe{began: time.Now()}
		timed, cancel := context.WithTimeout(ctx, maxRead)
		var err error
		p.version, err = f.cluster.PodsVersion(timed)
		cancel()
		switch {
		case err == nil && p.version < least:
			f.fail(fmt.Errorf("the version of the store was %d, and is %d now", least, p.version))
		case err == nil:
			least = p.version
			f.answered(p)
		case errors.Is(err, ErrRefused):
			f.fail(fmt.Errorf("read the version of the pods: %w", err))
		}
		pause(ctx, probeEvery-time.Since(p.began))
	}
}

// pause waits for some time, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// relist begins again with a new list of all pods.
func (f *follower) relist(ctx context.Context) {
	f.mu.Lock()
	f.stalls = time.Time{}
	f.mu.Unlock()
	pods, version, err := f.cluster.PodsAt(ctx)
	if err != nil {
		f.fail(fmt.Errorf("list pods: %w", err))
		return
	}
	index := newPopulation(time.Time{}, pods).following()
	f.mu.Lock()
	defer f.mu.Unlock()
	if version < f.version {
		f.giveUp(fmt.Errorf("the version of the store was %d, and a list has %d", f.version, version))
		return
	}
	f.index, f.version, f.stalls = index, version, time.Now().Add(stallAfter)
	f.settle()
	f.wake()
}
