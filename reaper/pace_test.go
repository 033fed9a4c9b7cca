package reaper

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The pace becomes half once, however many attempts were late at the same time, and rises
// by one when as many were in time.
func TestPaceFollowsTheTimeOfAttempts(t *testing.T) {
	var limits []int
	p := newPace(8, func(requests int) { limits = append(limits, requests) })
	attempts := func(n int, late bool) (slower bool) {
		t.Helper()
		var entered []int
		for range n {
			one, err := p.enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			entered = append(entered, one)
		}
		for _, one := range entered {
			slower = p.leave(one, late)
		}
		return slower
	}
	for _, step := range []struct {
		n          int
		late, want bool // want: a later attempt has more time
		now        int
	}{
		{8, false, false, 8}, // no more than at first
		{8, true, true, 4},
		{4, true, true, 2},
		{2, false, false, 3},
		{3, false, false, 4},
		{3, false, false, 4},
		{1, false, false, 5},
		{5, true, true, 2},
		{2, true, true, 1},
		{1, true, false, 1},
		{1, false, false, 2},
	} {
		if slower := attempts(step.n, step.late); slower != step.want || p.now != step.now {
			t.Errorf("after %d attempts, late %v: slower %v and pace %d, want %v and %d", step.n, step.late, slower, p.now, step.want, step.now)
		}
	}
	if want := []int{8, 4, 2, 3, 4, 5, 2, 1, 2}; !slices.Equal(limits, want) {
		t.Errorf("the backend was told %v, want %v", limits, want)
	}
}

// A pool that is late by itself, such as by a look that hangs, slows no other one.
func TestPaceOfABackendWithoutALimitFollowsWhatRuns(t *testing.T) {
	p := newPace(8, nil)
	enter := func(n int) (entered []int) {
		for range n {
			one, err := p.enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			entered = append(entered, one)
		}
		return entered
	}
	if slower := p.leave(enter(1)[0], true); slower || p.now != 8 {
		t.Errorf("after one that ran alone: slower %v and pace %d, want the same pace", slower, p.now)
	}
	if slower := p.leave(enter(4)[3], true); !slower || p.now != 2 {
		t.Errorf("after one of four: slower %v and pace %d, want 2", slower, p.now)
	}
}

// Attempts that do not fit wait, until they are let in or their context ends.
func TestPaceLetsAttemptsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(2, nil)
		var now, most atomic.Int64
		done := make(chan struct{})
		for range 6 {
			go func() {
				defer func() { done <- struct{}{} }()
				entered, err := p.enter(t.Context())
				if err != nil {
					t.Error(err)
				}
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Second)
				now.Add(-1)
				p.leave(entered, false)
			}()
		}
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := p.enter(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait whose context ended: %v", err)
		}
		for range 6 {
			<-done
		}
		if most.Load() != 2 || p.busy != 0 || len(p.waiting) != 0 {
			t.Errorf("%d at the same time, %d in the end, %d wait", most.Load(), p.busy, len(p.waiting))
		}
	})
}
