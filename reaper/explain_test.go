package reaper_test

import (
	"errors"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

func TestParseQuestion(t *testing.T) {
	for _, tt := range []struct {
		text, namespace string
		want            report.Question
		wrong           bool
	}{
		{"10.0.0.7", "", report.Question{Address: "10.0.0.7"}, false},
		{"fd00:0::1", "shop", report.Question{Address: "fd00::1"}, false},
		{"shop/web", "", report.Question{Namespace: "shop", Pod: "web"}, false},
		{"shop/web", "cart", report.Question{}, true},
		{"pod/web", "shop", report.Question{Namespace: "shop", Pod: "web"}, false},
		{"node/n1", "", report.Question{Node: "n1"}, false},
		{"web", "shop", report.Question{Namespace: "shop", Name: "web"}, false},
		{"", "", report.Question{}, true},
		{"/web", "", report.Question{}, true},
	} {
		got, err := report.ParseQuestion(tt.text, tt.namespace)
		mistake := (*ipam.InputError)(nil)
		equal(t, "mistake in "+tt.text, errors.As(err, &mistake), tt.wrong)
		equal(t, "question of "+tt.text, got, tt.want)
	}
}

func TestNodeIsExplainedByWhatLeaked(t *testing.T) {
	first, second := webAllocation(), webAllocation()
	first.Owner.Node, second.Key, second.IP, second.Owner.Pod, second.Owner.Node = "n1", "2", ip2, other, "n1"
	h := newHarness(fixedStore{poolOf(first, second)})
	h.pods.Add(showing(other, ip2))
	h.policy.DryRun = new(true)
	rep := h.run(t)
	x, err := report.Explain(rep, report.Question{Name: "n1"}, nil, nil)
	equal(t, "error", err, nil)
	equal(t, "question", x.Question, report.Question{Node: "n1"})
	equal(t, "explained", len(x.Found), 1)
	equal(t, "others", x.Others, 1)
	equal(t, "leaked", x.Leaked.Total, 1)
	equal(t, "found in the store", *x.Stores[0].Found, 2)

	equal(t, "leaks", len(x.Leaks), 1)

	rep.Entries[0].Owner.Pod = "n1"
	if _, err = report.Explain(rep, report.Question{Name: "n1"}, nil, nil); err == nil {
		t.Error("a name of a pod and of a node is no mistake")
	}
}

// Promise 7. Only a look on the node shows whether a static pod still runs.
func TestHoldOfAStaticPodSaysWhereToLook(t *testing.T) {
	w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"})
	w.cluster([]census.Pod{mirrored()}, booted("b1"))
	w.run(t)
	w.cluster(nil, booted("b1"))
	x, err := report.Explain(w.run(t), report.Question{Address: ip2.String()}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "note", x.Found[0].Note, "its pod was the mirror of a static pod on node n1")
	equal(t, "first remedy", x.Found[0].Remedies[0], judge.Remedy{
		Says: "check on that node whether its sandbox still runs", Command: "crictl pods --namespace default --name web",
	})
}
