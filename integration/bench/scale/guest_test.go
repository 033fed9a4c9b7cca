package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestMostAtOnceCountsWhatOverlaps(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	for _, tt := range []struct {
		name  string
		spans []span
		want  int
	}{
		{"none", nil, 0},
		{"one after the other", []span{{at(1), at(2)}, {at(2), at(3)}}, 1},
		{"one within the other", []span{{at(1), at(9)}, {at(2), at(3)}, {at(4), at(5)}}, 2},
		{"all", []span{{at(3), at(9)}, {at(1), at(4)}, {at(2), at(5)}}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := mostAtOnce(tt.spans); got != tt.want {
				t.Errorf("mostAtOnce = %d, want %d", got, tt.want)
			}
		})
	}
}

func TestAuditLogHasTheTimesOfRequests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	text := `{"kind":"Event","verb":"watch","requestReceivedTimestamp":"2026-01-01T00:00:00Z","stageTimestamp":"2026-01-01T00:00:09Z"}` + "\n" +
		`{"kind":"Event","verb":"get","requestReceivedTimestamp":"2026-01-01T00:00:00.000001Z","stageTimestamp":"2026-01-01T00:00:01.000000Z"}` + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readAudit(file)
	if err != nil || len(got) != 1 || got[0].to.Sub(got[0].from) != 999_999*time.Microsecond {
		t.Errorf("readAudit = %v, %v", got, err)
	}
}

func TestPercentilesAreOfTheSortedLatencies(t *testing.T) {
	var l latencies
	for n := range 100 {
		l = append(l, time.Duration(100-n))
	}
	if l.of(50) != 51 || l.of(99) != 100 || latencies(nil).of(99) != 0 {
		t.Errorf("p50 = %d, p99 = %d, of none %d", l.of(50), l.of(99), latencies(nil).of(99))
	}
}
