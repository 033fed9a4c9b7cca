package reaper

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLongPhaseIsToldWithItsRate(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	var told []string
	r := &run{Options: Options{
		Now:      func() time.Time { return now },
		Progress: func(line string) { told = append(told, line) },
	}}
	m := r.newMeter("settled", 1300)
	for range 13 {
		m.add(100)
		now = now.Add(500 * time.Millisecond)
	}
	want := []string{
		"settled 500 of 1,300, 250/s, 2s elapsed", "settled 900 of 1,300, 225/s, 4s elapsed",
		"settled 1,300 of 1,300, 217/s, 6s elapsed",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
