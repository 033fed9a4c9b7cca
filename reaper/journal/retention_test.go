package journal

import (
	"strconv"
	"testing"
	"time"
)

// Promise 10: a release of the last days can be undone, no matter how many runs followed.
func TestJournalsExpireByNumberAndByAge(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hourly := func(n, objects, size int) (runs []Stored) {
		for i := range n {
			runs = append(runs, Stored{strconv.Itoa(i), now.Add(-time.Duration(i) * time.Hour), objects, size})
		}
		return runs
	}
	for _, tt := range []struct {
		name      string
		runs      []Stored
		own       int
		retention Retention
		want      string // the latest and the oldest that expired
	}{
		{"fewer than the number", hourly(3, 1, 10), 0, Retention{Runs: 3}, ""},
		{"more than the number, and young", hourly(6, 1, 10), 0, Retention{Runs: 3, For: 6 * time.Hour}, ""},
		{"more than the number, some of them old", hourly(6, 1, 10), 0, Retention{Runs: 3, For: 5 * time.Hour}, "5-5"},
		{"neither a number nor an age", hourly(6, 1, 10), 0, Retention{}, "1-5"},
		{"later runs and the own", hourly(6, 1, 10), 2, Retention{}, "3-5"},
		{"young by the time of the current run", hourly(6, 1, 10), 2, Retention{For: 3 * time.Hour}, "5-5"},
		{"too many", hourly(1002, 1, 10), 0, Retention{Runs: 10, For: 10_000 * time.Hour}, "1000-1001"},
		{"too many parts", hourly(6, maxJournalObjects/4, 10), 0, Retention{For: 10_000 * time.Hour}, "4-5"},
		{"too many parts of the last ones", hourly(6, maxJournalObjects/4, 10), 0, Retention{Runs: 5, For: 10_000 * time.Hour}, "5-5"},
		{"too much", hourly(6, 1, maxJournalBytes/4), 0, Retention{For: 10_000 * time.Hour}, "4-5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			expired, ok := tt.retention.Expired(tt.runs, strconv.Itoa(tt.own))
			if len(expired) > 0 {
				got = expired[len(expired)-1] + "-" + expired[0]
			}
			if got != tt.want || !ok {
				t.Errorf("%q expire, %t, want %q", got, ok, tt.want)
			}
		})
	}
}
