package reapertest

import (
	"time"
	"unsafe"
)

// Looked returns the time of a look that is this old by each of the clocks. Package time has
// no function that changes one of them.
func Looked(t interface{ Fatalf(string, ...any) }, now time.Time, monotonic, wall time.Duration) time.Time {
	began := now.Add(-wall)
	(*struct { // as in time.Time
		wall uint64
		ext  int64 // monotonic nanoseconds
		loc  *time.Location
	})(unsafe.Pointer(&began)).ext += int64(wall - monotonic)
	if got := now.Sub(began); got != monotonic {
		t.Fatalf("the look is %v old by the monotonic clock, want %v: time.Time is built in another way", got, monotonic)
	}
	if got := now.Round(0).Sub(began.Round(0)); got != wall {
		t.Fatalf("the look is %v old by the wall clock, want %v", got, wall)
	}
	return began
}
