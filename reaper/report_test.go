package reaper_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 7.
func TestBriefReportLeavesOutAllocationsInUseWithoutANote(t *testing.T) {
	entry := func(key string, decision reaper.Verdict, note string, outcome reaper.Outcome) reaper.Entry {
		return reaper.Entry{Key: key, Verdict: decision, Note: note, Outcome: outcome}
	}
	r := reaper.Report{Entries: []reaper.Entry{
		entry("in use", reaper.InUse, "", reaper.Kept),
		entry("disagreement", reaper.InUse, "shown by pod a/b", reaper.Kept),
		entry("given back", reaper.InUse, "", reaper.Returned),
		entry("not given back", reaper.InUse, "", reaper.Failed),
		entry("held", reaper.Held, "", reaper.Kept),
		entry("suspected", reaper.Suspected, "", reaper.Kept),
		entry("released", reaper.Orphaned, "", reaper.Released),
	}}
	var got []string
	for _, e := range r.Brief().Entries {
		got = append(got, e.Key)
	}
	equal(t, "brief", got, []string{"disagreement", "given back", "not given back", "held", "suspected", "released"})
	equal(t, "entries of the whole report", len(r.Entries), 7)
}

// The JSON form is a contract.
func TestReportInJSON(t *testing.T) {
	m := backendtest.NewMemory("memory")
	h := newHarness(m.Backend(), scriptedStore{"broken", []step{{err: errors.New("no list")}}})
	h.addPods(t, m, "live-1", "gone-1")
	report, _ := h.partial(t)
	got, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "report", string(got), `{
 "apiVersion": "ip-reaper/v1alpha1",
 "kind": "ReapReport",
 "run": {
  "id": "run-1",
  "startedAt": "2026-03-01T12:00:00Z",
  "finishedAt": "2026-03-01T12:00:00Z",
  "dryRun": false,
  "version": "v1",
  "cluster": "https://cluster",
  "policy": {
   "gracePeriod": "0s",
   "minAge": "0s"
  },
  "memory": true
 },
 "result": {
  "exitCode": 0
 },
 "leaked": {
  "total": 1,
  "due": 0,
  "released": 1,
  "waiting": 0,
  "held": 0,
  "heldBy": []
 },
 "summary": {
  "entries": 2,
  "inUse": 1,
  "held": 0,
  "suspected": 0,
  "planned": 1,
  "released": 1,
  "changed": 0,
  "failed": 0
 },
 "backends": [
  {
   "name": "memory",
   "status": "ok",
   "entries": 2,
   "inUse": 1,
   "held": 0,
   "suspected": 0,
   "planned": 1,
   "released": 1,
   "changed": 0,
   "failed": 0
  },
  {
   "name": "broken",
   "status": "failed",
   "message": "no list",
   "failures": [
    "no list"
   ]
  }
 ],
 "networks": [],
 "pools": [
  {
   "backend": "memory",
   "name": "a",
   "range": "10.0.0.0/24",
   "capacity": 254,
   "used": 1,
   "live": 1,
   "leaked": 0,
   "protected": 0,
   "other": 0,
   "free": 253,
   "allocatedBefore": 2,
   "allocatedAfter": 1
  }
 ],
 "entries": [
  {
   "backend": "memory",
   "pool": "a",
   "key": "1",
   "ip": "10.0.0.1",
   "owner": {
    "namespace": "default",
    "pod": "live-1",
    "sandbox": "sandbox-live-1",
    "interface": "net1"
   },
   "verdict": "inUse",
   "reason": "PodPresent",
   "rule": 5,
   "leaked": false,
   "evidence": [
    {
     "source": "network-status annotation",
     "says": "the pod shows the address"
    }
   ],
   "outcome": "kept"
  },
  {
   "backend": "memory",
   "pool": "a",
   "key": "2",
   "ip": "10.0.0.2",
   "owner": {
    "namespace": "default",
    "pod": "gone-1",
    "sandbox": "sandbox-gone-1",
    "interface": "net1"
   },
   "verdict": "orphan",
   "reason": "PodAbsent",
   "rule": 33,
   "leaked": true,
   "evidence": [
    {
     "source": "list of pods",
     "says": "the pod does not exist"
    }
   ],
   "firstSeen": "2026-03-01T12:00:00Z",
   "due": "2026-03-01T12:00:00Z",
   "outcome": "released"
  }
 ]
}`)
}

// An empty report has empty lists, not null.
func TestEmptyReportInJSON(t *testing.T) {
	got, err := json.Marshal(newHarness().run(t))
	if err != nil {
		t.Fatal(err)
	}
	var lists struct{ Backends, Pools, Entries []any }
	if err := json.Unmarshal(got, &lists); err != nil {
		t.Fatal(err)
	}
	if lists.Backends == nil || lists.Pools == nil || lists.Entries == nil {
		t.Errorf("a list is null: %s", got)
	}
}

// An allocation that could not be decoded is in the report.
func TestUnreadableAllocationInTheReport(t *testing.T) {
	h := newHarness(fixedStore{poolOf(reaper.Allocation{Key: "abc", Unreadable: "offset abc is no number"})})
	e := h.run(t).Entries[0]
	equal(t, "entry", e, reaper.Entry{
		Backend: "fixed", Pool: "pool", Key: "abc", Verdict: reaper.Held, Reason: reaper.Unreadable, Rule: 1,
		Note: "offset abc is no number", Outcome: reaper.Kept,
		Evidence: []reaper.Evidence{{Source: "store", Says: "offset abc is no number"}},
	})
}
