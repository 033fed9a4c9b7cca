package ship_test

import (
	"strings"
	"testing"

	"github.com/robfig/cron/v3"
)

// accepts says why the chart refuses a value, or nil.
func accepts(t *testing.T, field, value string) error {
	t.Helper()
	_, err := theRelease.render(t, map[string]any{field: value})
	return err
}

// These schedules are the usual ones and the broken ones. The parser is that of the API
// server.
func TestBrokenSchedulesAreRefused(t *testing.T) {
	good := []string{
		"7,22,37,52 * * * *", "*/15 * * * *", "0 3 * * MON-FRI", "0 0 1 jan,Jul ?", "0-59/7 0-23 1-31 1-12 0-6", "@daily", "@every 1h30m",
	}
	bad := []string{
		"", "often", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 32 * *", "* * * 13 *", "* * * * 7",
		"*/0 * * * *", "-1 * * * *", "22-6 * * * *", "0 0 * DEC-JAN *", "* * * * MONDAY", "@often", "@every soon", "TZ=UTC * * * * *", "* * * * *\n",
	}
	for _, schedule := range good {
		if _, err := cron.ParseStandard(schedule); err != nil {
			t.Errorf("%q is not a good one: %v", schedule, err)
		}
		if err := accepts(t, "schedule", schedule); err != nil {
			t.Errorf("%q: %v", schedule, err)
		}
	}
	for _, schedule := range bad {
		if err := accepts(t, "schedule", schedule); err == nil || !strings.Contains(err.Error(), "schedule") {
			t.Errorf("%q: %v, want that schedule is wrong", schedule, err)
		}
	}
}

// These values would be refused by the API server or by the program only when a Job starts.
func TestValuesThatWouldFailLaterAreRefused(t *testing.T) {
	for field, tables := range map[string]struct{ good, bad []string }{
		"timeZone": {
			[]string{"Etc/UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "UTC", "Etc/GMT+1"},
			[]string{"", "Local", "local", "../etc/passwd", "Europe/Berlin ", "/UTC", "a/b/c/d"},
		},
		"timeout":           {[]string{"5m", "1h30m", "90s", "0h5m"}, []string{"", "0s", "0h0m", "-5m", "5", "5 m", "5d", "99999999999h"}},
		"priorityClassName": {[]string{"", "ip-reaper", "system-cluster-critical", "a.b"}, []string{"High", "-a", "a b", "a/b"}},
	} {
		for _, value := range tables.good {
			if err := accepts(t, field, value); err != nil {
				t.Errorf("%s %q: %v", field, value, err)
			}
		}
		for _, value := range tables.bad {
			if err := accepts(t, field, value); err == nil || !strings.Contains(err.Error(), "/"+field) {
				t.Errorf("%s %q: %v, want that it is wrong", field, value, err)
			}
		}
	}
	for _, field := range []string{"backoffLimit", "ttlSecondsAfterFinished", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"} {
		for _, value := range []int{-1, 1 << 31} {
			if _, err := theRelease.render(t, map[string]any{field: value}); err == nil || !strings.Contains(err.Error(), "/"+field) {
				t.Errorf("%s %d: %v, want that it is wrong", field, value, err)
			}
		}
	}
}
