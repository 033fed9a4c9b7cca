package reaper_test

import (
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 7. What the judge warns of is in the report of a run and of an inspection.
func TestWarningsOfTheJudgeAreInTheReport(t *testing.T) {
	foreign := webAllocation()
	foreign.Owner.Node, foreign.StoreNode = "b1", &ipam.StoreNode{Name: "b1", Node: "b1"}
	dns := census.Pod{Ref: other}
	for want, s := range map[string]situation{
		"does not count on a ready node": {pods: []census.Pod{dns}, nodes: []census.Node{{Name: "n1", Ready: true, OutOfService: true}}},
		"too many addresses on":          {pods: []census.Pod{{Ref: other, AddressUnknown: true, TooMuch: true}}},
		"only by annotations":            {pods: []census.Pod{showing(other, ip1)}, pools: []ipam.Pool{poolOf(webAllocation())}},
		"may be of another cluster":      {pods: []census.Pod{dns}, pools: []ipam.Pool{poolOf(foreign)}, nodes: []census.Node{ready("n1")}},
	} {
		for how, rep := range map[string]report.Report{"run": s.report(t), "inspection": inspect(t, s)} {
			if got := strings.Join(rep.Warnings, "\n"); !strings.Contains(got, want) {
				t.Errorf("warnings of the %s are\n%s\nwant %q", how, got, want)
			}
		}
	}
}
