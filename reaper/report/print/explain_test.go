package print

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A node may hold thousands of allocations.
func TestNodeThatHoldsManyIsExplainedInFewLines(t *testing.T) {
	x := report.Explanation{
		Question: report.Question{Node: "n1"}, NodeState: "is not ready since noon", Live: 35, Leaked: &report.Leaked{}, Others: 3,
		Leaks: []report.Leak{{Status: report.Due, Reason: judge.PodAbsent, Count: 1}, {Status: report.Held, Reason: judge.NodeUnreachable, Count: 2500}},
	}
	for i := range 2500 {
		backend, address := "whereabouts", new(report.Address{Fate: report.Held})
		if i%2 > 0 { // the reservation of the same address
			backend, address = "overlapping", x.Found[i-1].Address
		}
		x.Found = append(x.Found, report.Explained{Entry: report.Entry{
			Backend: backend, Pool: "kube-system/a-pool-with-a-long-name", Owner: ipam.EntryOwner{Namespace: "shop", Pod: "a-pod-with-an-even-longer-name"}, Address: address,
			IP: fmt.Sprintf("10.0.%d.%d", i/500, i%500/2), Verdict: judge.Held, Reason: judge.NodeUnreachable, Leaked: true,
			Evidence: []judge.Evidence{{Source: "node n0", Says: "it is not ready"}, {Source: "node n1", Says: "it is not ready since noon"}},
		}})
	}
	x.Found[2499].IP, x.Found[2499].Verdict, x.Found[2499].Reason = "10.1.0.0", judge.Orphaned, judge.PodAbsent
	var text strings.Builder
	if err := WriteExplanation(&text, "table", 80, x); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  it is not ready since noon; 35 addresses of pods that the API server still lists on it, which are deleted if it is fenced or deleted: be sure that nothing runs there; it keeps 2,499 leaked allocations (1,250 addresses), of which 2,499 allocations may be on another node\n",
		"  due         1, PodAbsent\n  held        2,500, NodeUnreachable\n",
		"\nIP        POOL ",
		"\n10.1.0.0  kube-system/a-pool-with-a-long-name  shop/a-pod-with-an-even-longer-name  PodAbsent\n10.0.0.0  kube-",
		"\n… and 1,246 more: -o json has each\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing:\n%s", want, text.String())
		}
	}
	if lines := strings.Count(text.String(), "\n"); lines > 20 {
		t.Errorf("%d lines:\n%s", lines, text.String())
	}
}

// An explanation of an address begins with who has it, or for whom a store has it.
func TestExplanationOfAnAddressBeginsWithItsPod(t *testing.T) {
	entry := func(pod string, v judge.Verdict, fate report.Fate) report.Explained {
		return report.Explained{Entry: report.Entry{IP: "10.0.0.1", Owner: ipam.EntryOwner{Namespace: "shop", Pod: pod}, Verdict: v, Address: &report.Address{Fate: fate}}}
	}
	web := report.Shown{Kind: census.KindPod, Namespace: "shop", Name: "web"}
	for want, x := range map[string]report.Explanation{
		"pod shop/web; in use; 1 allocation":                   {Claims: []report.Shown{web}, Found: []report.Explained{entry("gone", judge.InUse, report.InUse)}},
		"pod shop/hides; in use; 1 allocation":                 {Found: []report.Explained{entry("hides", judge.InUse, report.InUse)}},
		"pod shop/gone; leaked and due; 1 allocation":          {Claims: []report.Shown{web}, Found: []report.Explained{entry("gone", judge.Orphaned, report.Due)}},
		"in use by TWO pods: shop/a and shop/b; 2 allocations": {Sharing: []string{"shop/a", "shop/b"}, Claims: []report.Shown{web}, Found: []report.Explained{entry("a", judge.InUse, report.InUse), entry("b", judge.InUse, report.InUse)}},
		"in use by 3 pods: a/a and b/b and c/c; in no store that was listed, and in the range of no pool that is known": {Sharing: []string{"a/a", "b/b", "c/c"}, Stores: []report.StoreAnswer{{Found: new(int)}}},
	} {
		x.Question.Address, x.Leaked = "10.0.0.1", &report.Leaked{}
		if got := summaryOf(x); got != want {
			t.Errorf("summary %q, want %q", got, want)
		}
	}
}

// The reservation of an entry, of which there is nothing else to say, has no lines of its own.
func TestTwinsAreOneBlock(t *testing.T) {
	entry := report.Explained{Entry: report.Entry{Backend: "whereabouts", Pool: "lan", Key: "1", IP: "10.0.0.1", Owner: ipam.EntryOwner{Pod: "web", Sandbox: "abc"}, Verdict: judge.Held, Reason: judge.RuleHold}}
	twin, sibling, other := entry, entry, entry
	twin.Backend, twin.Key, twin.Owner.Sandbox = "overlapping", "r", ""
	sibling.Backend, sibling.Reason = "overlapping", judge.SiblingKept
	other.IP = "10.0.0.10"
	var got []string
	for _, block := range allocationBlocks([]report.Explained{entry, other, twin, sibling}) {
		got = append(got, strings.Join(strings.Fields(strings.Join(block.below, "|")), " "))
	}
	want := []string{
		"10.0.0.1 of whereabouts lan, key 1|10.0.0.1 of overlapping lan, key r| pod web| sandbox abc| state held, RuleHold",
		"10.0.0.10 of whereabouts lan, key 1| pod web| sandbox abc| state held, RuleHold",
		"10.0.0.1 of overlapping lan, key 1| pod web| sandbox abc| state held, SiblingKept",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}
