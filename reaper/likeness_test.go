package reaper_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 7. Tenants may write any number of objects that cannot be decoded. The report has each,
// and few of them in its warnings, also if two stores have the same.
func TestObjectsThatCannotBeDecodedAreCounted(t *testing.T) {
	var steps []step
	var objects []string
	for i := range 40 {
		err := &ipam.ObjectError{Object: fmt.Sprintf("attachment %d", i), Err: errors.New("no JSON")}
		steps, objects = append(steps, step{err: err}), append(objects, err.Error())
	}
	h := newHarness(scriptedStore{name: "one", steps: steps}, scriptedStore{name: "two", steps: steps})
	h.pods.Add(census.Pod{Ref: other})
	report := h.run(t)
	equal(t, "warnings", report.Warnings, append(slices.Clone(objects[:5]),
		"one: 35 more objects cannot be decoded: -o json lists them", "two: 35 more objects cannot be decoded: -o json lists them"))
	equal(t, "objects of the report", report.Backends[1].Undecoded, objects)
}

// Promise 7. A flood of equal failures is one sentence in the error, and two lines in the
// log. The report names each.
func TestEqualFailuresAreCounted(t *testing.T) {
	const pools = 40
	var steps []step
	for i := range pools {
		pool := fmt.Sprintf("pool-%c", 'a'+i)
		steps = append(steps, step{err: &ipam.PoolError{Pool: pool, Err: fmt.Errorf("pools %q is forbidden: uid %d", pool, 1000+i)}})
	}
	var log bytes.Buffer
	h := newHarness(scriptedStore{name: "store", steps: append(steps, step{err: &ipam.PoolError{Pool: "torn", Err: errors.New("no range")}})})
	h.pods.Add(census.Pod{Ref: other})
	o := h.options()
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	report, err := reaper.Run(t.Context(), o)
	const want = `40 failures, the first: store: pool-a: pools "pool-a" is forbidden: uid 1000; store: torn: no range`
	if err == nil || err.Error() != want {
		t.Errorf("run: %v\nwant %s", err, want)
	}
	if lines := strings.Count(log.String(), "forbidden"); lines != 2 {
		t.Errorf("the log has %d lines about it, want 2:\n%s", lines, log.String())
	}
	if !strings.Contains(log.String(), "count=40") {
		t.Errorf("the log does not count:\n%s", log.String())
	}
	var failures []string
	for _, st := range steps {
		failures = append(failures, st.err.Error())
	}
	equal(t, "failures of the report", report.Backends[0].Failures, append(failures, "torn: no range"))
}
