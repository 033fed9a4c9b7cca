package reaper

import (
	"errors"
	"slices"
	"time"
)

// at returns the version of the index.
func (f *follower) at() uint64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.version
}

// told applies a change. It reports whether the watch may go on.
func (f *follower) told(c PodChange) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case c.Version == 0:
		f.giveUp(errors.New("a change of a pod has no version"))
		return false
	case c.Version <= f.version:
		return true
	case c.Ref != PodRef{}:
		f.index.apply(c.Ref, c.Pod)
	}
	f.version = c.Version
	f.settle()
	return true
}

// answered keeps the answer to a probe until the index has reached it.
func (f *follower) answered(p probe) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = slices.DeleteFunc(f.asked, func(old probe) bool { return time.Since(old.began) > Freshness })
	f.asked = append(f.asked, p)
	f.settle()
}

// settle makes the latest probe that the index has reached a look.
func (f *follower) settle() {
	reached := 0
	for reached < len(f.asked) && f.asked[reached].version <= f.version {
		f.looked = f.asked[reached].began
		reached++
	}
	if reached == 0 {
		return
	}
	f.asked = slices.Delete(f.asked, 0, reached)
	if time.Since(f.looked) <= shareFollowed {
		f.stalls = time.Now().Add(stallAfter)
	}
	f.wake()
}
