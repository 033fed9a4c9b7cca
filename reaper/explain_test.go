package reaper_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
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

// explained returns the explanation of the address 10.0.0.1 from a dry run.
func (s situation) explained(t *testing.T) report.Explanation {
	t.Helper()
	h := s.harness()
	h.pods.Add(census.Pod{Ref: other})
	h.policy = s.terms()
	found := h.run(t)
	found.Run.Context = "prod" // as in the command of a run
	x, err := report.Explain(found, report.Question{Address: ip1.String()}, nil, []string{"ip-reaper", "run", "--context", "prod"})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestExplanationSaysWhatWouldChangeTheDecision(t *testing.T) {
	allocation := func(change func(*ipam.Allocation)) []ipam.Pool {
		a := webAllocation()
		if change != nil {
			change(&a)
		}
		return []ipam.Pool{poolOf(a)}
	}
	for _, tt := range []struct {
		name      string
		situation situation
		rule      int
		command   string // one of the commands; empty if there is none
		says      string // a part of what the remedies say
	}{
		{"it waits, and no run remembers", situation{pools: allocation(nil)}, 38, "ip-reaper run --context prod --remember", "no run has saved"},
		{"its node is not ready", situation{
			pools: allocation(func(a *ipam.Allocation) { a.Owner.Node = "n1" }), nodes: []census.Node{{Name: "n1"}},
		}, 18, "kubectl --context prod taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", "once you are sure"},
		{"a rule of the policy", situation{
			pools: allocation(nil), policy: func(p *policy.Policy) {
				p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"w*"}}, Hold: true}}
			},
		}, 26, "", "held by rules[0]: pods w*"},
		{"its age", situation{pools: allocation(func(a *ipam.Allocation) { a.Created = noon.Add(-time.Minute) })},
			30, "ip-reaper run --context prod --pod default/web --min-age=0s", "too young until 2026-03-01T12:04:00Z"},
		{"its pod is finished", situation{pools: allocation(nil), pods: []census.Pod{finished(showing(web, ip1))}},
			13, "", "pods.finished"},
		{"its pod lives", situation{pools: allocation(nil), pods: []census.Pod{showing(web, ip1)}},
			5, "", "nothing to do: its pod uses it"},
		{"its sandbox exists", situation{pools: []ipam.Pool{poolOf(lease())}, sandboxes: []string{"s1"}},
			43, "crictl inspectp s1", "in use until the kubelet removes its sandbox"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := tt.situation.explained(t)
			equal(t, "found", len(x.Found), 1)
			e := x.Found[0]
			equal(t, "rule", e.Rule, tt.rule)
			rules, first := judge.Rules(), 0
			if tt.rule > len(rules) {
				rules, first = judge.NodeRules(), len(rules)
			}
			equal(t, "rules that were asked", len(e.Asked), tt.rule-first)
			last := rules[tt.rule-first-1]
			equal(t, "the last one", e.Asked[tt.rule-first-1], judge.AskedRule{Number: tt.rule, Reason: last.Reason, Doc: last.Doc, Matched: true})
			equal(t, "the first one", e.Asked[0].Number, first+1)
			equal(t, "reason", last.Reason, e.Reason)
			var says, commands []string
			for _, r := range e.Remedies {
				says = append(says, r.Says)
				if r.Command != "" {
					commands = append(commands, r.Command)
				}
			}
			if !strings.Contains(strings.Join(says, "\n"), tt.says) {
				t.Errorf("remedies say %q, want %q", says, tt.says)
			}
			if !strings.Contains("\n"+strings.Join(commands, "\n")+"\n", "\n"+tt.command+"\n") && (tt.command != "" || len(commands) > 0) {
				t.Errorf("commands are %q, want %q", commands, tt.command)
			}
		})
	}
}

// A store may say anything, and the operator pastes the command.
func TestNoNameOfAStoreBecomesMoreThanANameInACommand(t *testing.T) {
	for _, name := range []string{"--all", "-n", "x; reboot", "$(reboot)", "a b", "`x`", "a'b", "a\nb", "x&", ""} {
		a := webAllocation()
		a.Owner.Pod.Name = name
		a.Owner.Node = name
		x := situation{pools: []ipam.Pool{poolOf(a)}, pods: []census.Pod{showing(a.Owner.Pod, ip1)}, nodes: []census.Node{{Name: name}}}.explained(t)
		for _, r := range x.Found[0].Remedies {
			if strings.HasPrefix(r.Command, "kubectl") {
				t.Errorf("the name %q is in %q", name, r.Command)
			}
		}
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

	x, err = report.Explain(rep, report.Question{Name: "nothing"}, nil, nil)
	equal(t, "error", err, nil)
	equal(t, "found in the store", *x.Stores[0].Found, 0)
	rep.Entries[0].Owner.Pod = "n1"
	if _, err = report.Explain(rep, report.Question{Name: "n1"}, nil, nil); err == nil {
		t.Error("a name of a pod and of a node is no mistake")
	}
}
