package report_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
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
