package report_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Who writes an event chooses no advice: of a network that the pod is not known to ask for, it gives none.
func TestEventGivesNoAdvice(t *testing.T) {
	full := divided(ipam.Division{Terms: &ipam.BlockTerms{Strict: true, MaxPerNode: 20}, Unclaimed: new(big.Int)}, blockOf{"a", 4})
	r := report.Make(full)
	names := []report.Event{{Says: "No IPs available in pools: [10.0.0.0/28]"}}
	for name, tt := range map[string]struct {
		asks   bool
		events []report.Event
		want   string // told, only told, advice
	}{
		"it asks":                       {true, nil, "[false false true]"},
		"it asks, and an event says so": {true, names, "[true false true]"},
		"an event alone":                {false, names, "[true true false]"},
		"nothing":                       {false, nil, "[]"},
		"an event of something else":    {false, []report.Event{{Says: "10.9.0.0/28"}}, "[]"},
	} {
		asking := report.Asking{Namespace: "app", Pod: "web", Node: "b", Waits: true, Default: tt.asks, Events: tt.events}
		x, err := report.Explain(r, report.Question{Namespace: "app", Pod: "web"}, []report.Asking{asking}, nil)
		var got []bool
		for _, p := range x.Places {
			got = append(got, p.Told, p.OnlyTold, p.NoBlock != nil)
		}
		if fmt.Sprint(got) != tt.want || err != nil {
			t.Errorf("%s: told, only told, advice: %v, %v; want %s", name, got, err, tt.want)
		}
	}
}

// A pod that runs without an interface is not known to use what its status does not show, and gets nothing anew before
// it is deleted. No verdict changes by that.
func TestPodThatRunsWithoutAnInterfaceUsesNothingElse(t *testing.T) {
	for source, want := range map[string]bool{census.PodStatus: false, census.NetworkStatus: true, "list of pods": true} {
		for _, restart := range []bool{true, false} {
			entry := report.Entry{
				IP: "10.0.0.1", Owner: ipam.EntryOwner{Namespace: "app", Pod: "web"}, Verdict: judge.InUse, Reason: judge.PodPresent, Rule: 5,
				Evidence: []judge.Evidence{{Source: source}},
			}
			asking := report.Asking{Namespace: "app", Pod: "web", Node: "a", Restart: restart, Why: "runs"}
			x, err := report.Explain(report.Report{Entries: []report.Entry{entry}}, report.Question{Namespace: "app", Pod: "web"}, []report.Asking{asking}, nil)
			if err != nil || len(x.Found) != 1 || x.Found[0].Verdict != judge.InUse {
				t.Fatalf("found %+v, %v", x.Found, err)
			}
			if got := strings.HasPrefix(x.Found[0].Remedies[0].Says, "its pod may run without it"); got != (want && restart) {
				t.Errorf("shown by the %s, restart %v: %q", source, restart, x.Found[0].Remedies[0].Says)
			}
		}
	}
}

// Each namespace has its turn, so that one with very many pods that wait hides no others.
func TestPodsThatWaitTakeTurnsByNamespace(t *testing.T) {
	waits := func(namespace, name string) census.Pod {
		return census.Pod{Ref: ipam.PodRef{Namespace: namespace, Name: name}, Node: "n", AddressUnknown: true}
	}
	noNode := waits("a", "no-node")
	noNode.Node = ""
	found := reapertest.Lists{Pods: []census.Pod{
		waits("a", "1"), waits("a", "2"), noNode, waits("a", "3"), waits("b", "1"), {Ref: ipam.PodRef{Namespace: "b", Name: "runs"}, Node: "n"}, waits("c", "1"), waits("c", "2"),
	}}.Census(t, census.Scope{})
	want := []ipam.PodRef{{Namespace: "a", Name: "1"}, {Namespace: "b", Name: "1"}, {Namespace: "c", Name: "1"}, {Namespace: "a", Name: "2"}, {Namespace: "c", Name: "2"}, {Namespace: "a", Name: "3"}}
	r := report.Make(report.Results{Living: &found})
	if diff := cmp.Diff(want, r.Waiting()); diff != "" {
		t.Errorf("pods that wait (-want +got):\n%s", diff)
	}
}
