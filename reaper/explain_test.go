package reaper_test

import (
	"errors"
	"testing"
	"time"

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
		{"pod/shop/web", "", report.Question{Namespace: "shop", Pod: "web"}, false},
		{"pod/shop/web", "cart", report.Question{}, true},
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

// A pod in Terminating says since when, and once its grace period is over, what ends that.
func TestPodThatDoesNotEndSaysWhatEndsIt(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	inUse := report.Entry{IP: ip1.String(), Owner: ipam.EntryOwner{Namespace: "default", Pod: "web"}, Verdict: judge.InUse, Reason: judge.PodPresent, Rule: 5}
	nodes := census.New(began, nil, nil, census.Node{Name: "n1", Ready: true}, census.Node{Name: "n2", Since: began}, census.Node{Name: "n4"}, census.Node{Name: "n5", OutOfService: true})
	for _, tt := range []struct {
		name       string
		node       string
		after      time.Duration
		finalizers []string
		want       string
	}{
		{"in time", "n1", 30 * time.Second, nil, "Terminating since 2026-01-01T00:00:00Z, with a grace period of 30s"},
		{
			"a finalizer", "n1", 17 * time.Minute, []string{"example.com/a"},
			"Terminating since 2026-01-01T00:00:00Z, past its grace period of 30s: it ends once its finalizers (example.com/a) are removed and the kubelet of its node n1 has stopped it",
		},
		{
			"a node that is away", "n2", 17 * time.Minute, nil,
			"Terminating since 2026-01-01T00:00:00Z, past its grace period of 30s: it ends once its node n2, which is not ready since 2026-01-01T00:00:00Z, has stopped it, or the garbage collector of pods sees that it is fenced or gone",
		},
		{
			"files of an unknown time", "n1", 0, []string{"example.com/a"},
			"Terminating since 2026-01-01T00:00:00Z, with a grace period of 30s and the finalizers example.com/a",
		},
		{
			"a node that does not say since when", "n4", 17 * time.Minute, nil,
			"Terminating since 2026-01-01T00:00:00Z, past its grace period of 30s: it ends once its node n4, which is not ready, has stopped it, or the garbage collector of pods sees that it is fenced or gone",
		},
		{
			"no node", "", 17 * time.Minute, []string{"example.com/a"},
			"Terminating since 2026-01-01T00:00:00Z, past its grace period of 30s: it ends once its finalizers (example.com/a) are removed and the API server has deleted it",
		},
		{
			"after a DEL", "n1", 17 * time.Minute, nil,
			"Terminating since 2026-01-01T00:00:00Z, and Calico's annotation of it is empty, as after a DEL, past its grace period of 30s: it ends once the kubelet of its node n1 has stopped it",
		},
		{
			"a node that is fenced", "n5", 17 * time.Minute, nil,
			"Terminating since 2026-01-01T00:00:00Z, past its grace period of 30s: it ends once its node n5, which is fenced by the taint out-of-service, and not ready, has stopped it, or the garbage collector of pods sees that it is fenced or gone",
		},
		{
			"a node that is gone", "n3", 17 * time.Minute, nil,
			"Terminating since 2026-01-01T00:00:00Z, past its grace period of 30s: it ends once its node n3, which does not exist, has stopped it, or the garbage collector of pods sees that it is fenced or gone",
		},
	} {
		asking := report.Asking{Namespace: "default", Pod: "web", Node: tt.node, Deletion: &report.Deletion{
			Since: began, Grace: 30, Finalizers: tt.finalizers, Emptied: tt.name == "after a DEL",
		}}
		r := report.Report{Run: report.RunInfo{StartedAt: began.Add(tt.after), Origin: report.Origin{Undated: tt.after == 0}}, Entries: []report.Entry{inUse}, Living: &nodes}
		x, err := report.Explain(r, report.Question{Namespace: "default", Pod: "web"}, []report.Asking{asking}, nil)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, tt.name, x.Asking[0].Why, tt.want)
		x, err = report.Explain(r, report.Question{Address: ip1.String()}, []report.Asking{asking}, nil)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, tt.name+": the remedy", x.Found[0].Remedies[0].Says, "its pod is "+tt.want)
	}
}
