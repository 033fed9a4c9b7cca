package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// An ended watch went on from a version, and ended with an error or without.
type ended struct {
	since uint64
	err   error
}

// watch keeps the index current. It opens one watch after the other, each from the version
// of the index, and does not wait for the end of the one before: an API server sends a
// bookmark only some time after the beginning of a watch. Each watch tells all changes after
// its version, so the others do not matter to it.
func (f *follower) watch(ctx context.Context) {
	ends := make(chan ended)
	open := func() {
		since := f.at()
		f.loops.Go(func() {
			err := f.cluster.WatchPods(ctx, since, f.told)
			select {
			case ends <- ended{since, err}:
			case <-ctx.Done():
			}
		})
	}
	next := time.NewTicker(watchEvery)
	defer next.Stop()
	open()
	for relists := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			open()
		case w := <-ends:
			expired := errors.Is(w.err, ErrVersionExpired)
			switch {
			case expired && w.since < f.at(): // the index is past that version
			case expired && relists < maxRelists:
				relists++
				f.relist(ctx)
			case expired, errors.Is(w.err, ErrRefused):
				f.fail(fmt.Errorf("watch pods: %w", w.err))
			}
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
	if err = cmp.Or(err, f.census.emptied(len(pods), 0)); err != nil {
		f.fail(fmt.Errorf("list pods: %w", err))
		return
	}
	index := newPopulation(time.Time{}, pods).following()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stalls = time.Now().Add(stallAfter)
	if version > f.version { // otherwise another watch went on meanwhile
		f.index, f.version = index, version
	}
	f.settle()
	f.wake()
}
