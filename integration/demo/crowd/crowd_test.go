package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// small has a few of everything.
var small = size{
	nodes: 6, unreachable: 1, blocks: []int{8, 6, 4},
	live: []int{30, 6, 5}, leaked: []int{8, 9, 7}, down: 3, ruled: 2, newer: 4, twice: 2,
	sets: 3, absent: 1, plain: 1, finished: 2,
	attached: []int{12, 4, 2}, detached: []int{3, 4, 5},
	nights: []int{2, 5}, nightlies: []int{1, 2},
}

func TestCrowdIsWhatItsSizeSays(t *testing.T) {
	l, err := start(t.Context(), small, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Cluster.Stop(); err != nil {
			t.Error(err)
		}
	}()
	r, err := reap.New()
	if err != nil {
		t.Fatal(err)
	}
	r.Env = l.variables()
	result, err := r.Run(t.Context(), "run", "--context="+cluster.ContextName, "-o=json", "--all")
	if err != nil || result.Report == nil {
		t.Fatalf("%v\n%s%s", err, result.Stdout, result.Stderr)
	}
	got := map[string]int{}
	for _, e := range result.Report.Entries {
		got[fmt.Sprintf("%s %s %s", e.Backend, e.Decision, e.Reason)]++
	}
	want := map[string]int{
		"calico inUse PodPresent": 41, "calico held NotPodOwned": 6,
		"calico held NodeUnreachable": 3, "calico held RuleHold": 2,
		"calico suspected PodAbsent": 4, "calico orphan PodAbsent": 18, "calico orphan SandboxReplaced": 2,
		"whereabouts inUse PodPresent": 17, "overlapping inUse PodPresent": 17,
		"whereabouts held Retained": 1, "overlapping held Retained": 1,
		"whereabouts orphan PodAbsent": 12, "overlapping orphan PodAbsent": 12,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if entries := len(result.Report.Entries); entries != l.allocationCount() {
		t.Errorf("%d entries, and the crowd says %d allocations", entries, l.allocationCount())
	}
	runs, err := memory.Memory{Cluster: l.Cluster, Namespace: state}.Journals(t.Context())
	if err != nil || len(runs) != 2 {
		t.Errorf("journals %v, %v, want those of two nights", runs, err)
	}
}
