package judge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// remediesOf returns the remedies for a decision of a run that remembers nothing.
func remediesOf(d judge.Decision) []judge.Remedy {
	o := d.Allocation.Owner
	return judge.Subject{
		Rule: d.Rule, Verdict: d.Verdict, Reason: d.Reason, ChangedBy: d.ChangedBy, Note: d.Note, Evidence: d.Evidence, Pool: d.Allocation.Pool, Policy: "the policy",
		IP: ipOf(d), Ripe: d.Ripens(), Wait: judge.Verdicts{Decisions: []judge.Decision{d}}.Waits()[0],
		Owner:   ipam.EntryOwner{Namespace: o.Pod.Namespace, Pod: o.Pod.Name, Sandbox: o.Sandbox, Node: o.Node},
		Command: []string{"ip-reaper", "run", "--context", "prod"}, Kubectl: []string{"--context", "prod"},
	}.Remedies()
}

// ipOf returns the address of a decision, as a report has it.
func ipOf(d judge.Decision) string {
	if !d.Allocation.IP.IsValid() {
		return ""
	}
	return d.Allocation.IP.String()
}

func TestRemediesSayWhatWouldChangeTheDecision(t *testing.T) {
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
		{"it waits, and no run remembers", situation{pools: allocation(nil)}, 39, "ip-reaper run --context prod --ip 10.0.0.1 --pod default/web --remember --dry-run", "its grace period has not begun"},
		{"its node is not ready", situation{
			pools: allocation(func(a *ipam.Allocation) { a.Owner.Node = "n1" }), nodes: []census.Node{{Name: "n1"}},
		}, 18, "kubectl --context prod taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", "once you are sure"},
		{"a rule of the policy", situation{
			pools: allocation(nil), policy: func(p *policy.Policy) {
				p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"w*"}}, Hold: true}}
			},
		}, 26, "", "remove rules[0] (pods w*) from the policy"},
		{"its age", situation{pools: allocation(func(a *ipam.Allocation) { a.Created = noon.Add(-time.Minute) })},
			30, "ip-reaper run --context prod --ip 10.0.0.1 --pod default/web --grace-period=60s --min-age=0s --wait=2m --dry-run", "its grace period has not begun"},
		{"its pod is finished", situation{pools: allocation(nil), pods: []census.Pod{finished(showing(web, ip1))}},
			13, "", "pods.finished"},
		{"its pod lives", situation{pools: allocation(nil), pods: []census.Pod{showing(web, ip1)}},
			5, "", "it is kept while its pod shows it"},
		{"its pod shows another address", situation{pools: allocation(nil), pods: []census.Pod{inStatus(1, showing(web, ip2))}},
			15, "", "nothing to do: its pod shows 10.0.0.2 on net1, which does not prove that it has given this one up"},
		{"its pod may have it without showing it", situation{pools: allocation(nil), pods: []census.Pod{{Ref: web, AddressUnknown: true}}},
			15, "", "nothing to do: its pod exists, and may use it without showing it"},
		{"its sandbox exists", situation{pools: []ipam.Pool{poolOf(lease())}, sandboxes: []string{"s1"}},
			44, "crictl inspectp s1", "in use until the kubelet removes its sandbox"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.situation.judge(t, noon)[0]
			asked := judge.AskedUntil(d.Rule)
			equal(t, "rule", d.Rule, tt.rule)
			rules, first := judge.Rules(), 0
			if tt.rule > len(rules) {
				rules, first = judge.NodeRules(), len(rules)
			}
			equal(t, "rules that were asked", len(asked), tt.rule-first)
			last := rules[tt.rule-first-1]
			equal(t, "the last one", asked[tt.rule-first-1], judge.AskedRule{Number: tt.rule, Reason: last.Reason, Doc: last.Doc, Matched: true})
			equal(t, "the first one", asked[0].Number, first+1)
			equal(t, "reason", last.Reason, d.Reason)
			var says, commands []string
			for _, r := range remediesOf(d) {
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

// Whom a look acts as has a role of ip-reaper, which may not write nodes.
func TestNodesAreFencedByTheUserWhoTypes(t *testing.T) {
	found := judge.Subject{
		Rule: 18, Verdict: judge.Held, Reason: judge.NodeUnreachable, Evidence: []judge.Evidence{{Source: "node n1", Says: "it is not ready"}},
		Kubectl: []string{"--context", "prod", "--as", "vera", "--as-group", "lookers"},
	}.Remedies()
	equal(t, "the last command", found[len(found)-1].Command, "kubectl --context prod delete node n1")
}

// What writes needs the namespace first. A look does not.
func TestWhatWritesNeedsTheStateNamespace(t *testing.T) {
	s := judge.Subject{
		Rule: 39, Verdict: judge.Suspected, Reason: judge.PodAbsent, Owner: ipam.EntryOwner{Namespace: "default", Pod: "web"}, IP: "10.0.0.1", Wait: 6 * time.Minute,
		NoState: "ip-reaper", Command: []string{"ip-reaper", "run"},
	}
	found := s.Remedies()
	equal(t, "remedies", len(found), 2)
	equal(t, "the first", found[0], judge.Remedy{
		Says:    "its grace period has not begun: first install ip-reaper, or create at least the namespace in which it remembers",
		Command: "kubectl create namespace ip-reaper",
	})
	equal(t, "the look", found[1].Command, "ip-reaper run --ip 10.0.0.1 --pod default/web --grace-period=60s --wait=6m --dry-run")
	s.Verdict = judge.Orphaned
	equal(t, "of what is due", s.Remedies()[0].Command, "kubectl create namespace ip-reaper")
}

// What a limit refuses is not released by what is printed.
func TestNothingReleasesWhatIsOfARefusedPlan(t *testing.T) {
	s := judge.Subject{Rule: 39, Verdict: judge.Orphaned, Reason: judge.PodAbsent, IP: "10.0.0.1", Pool: "pool", Command: []string{"ip-reaper", "run"}}
	equal(t, "without a refusal", s.Remedies(), []judge.Remedy{{Says: "release it (a run looks again first)", Command: "ip-reaper run --ip 10.0.0.1 --pool pool --dry-run=false"}})
	s.Refused = []judge.Refusal{{Message: "limits.maxReleases: 2 of 3", Remedy: "review the plan"}, {Message: "noPods: none", Remedy: "check the server"}}
	equal(t, "with refusals", s.Remedies(), []judge.Remedy{{Says: "limits.maxReleases: 2 of 3: review the plan"}, {Says: "noPods: none: check the server"}})
}

// What is printed for a pool or a node narrows a run to that, by names that are no flags.
func TestWhatIsPrintedForMoreThanOneAllocationNarrowsARunToThat(t *testing.T) {
	s := judge.Subject{Rule: 39, Verdict: judge.Orphaned, Reason: judge.PodAbsent, IP: "10.0.0.1", Pool: "pool", Command: []string{"ip-reaper", "run"}}
	for _, tt := range []struct {
		only []string
		want string
	}{
		{[]string{"--node", "n1"}, "ip-reaper run --node n1 --dry-run=false"},
		{[]string{}, "ip-reaper run --dry-run=false"}, // a run on a node is about that node
		{[]string{"--pool", "--all"}, ""},
	} {
		s.Only = tt.only
		equal(t, "command", s.Remedies()[0].Command, tt.want)
	}
	s.Only, s.IP = nil, "fe80::1%$(reboot)"
	equal(t, "command for an address with a zone", s.Remedies()[0].Command, "")
	s.IP, s.Command = "::1", []string{"ip-reaper", "run", "--policy", "my files/policy.yaml"}
	equal(t, "command with a file of the user", s.Remedies()[0].Command, "ip-reaper run --policy 'my files/policy.yaml' --ip ::1 --pool pool --dry-run=false")
}

// A store may say anything, and the operator pastes the command.
func TestNoNameOfAStoreBecomesMoreThanANameInACommand(t *testing.T) {
	for _, name := range []string{"--all", "-n", "x; reboot", "$(reboot)", "a b", "`x`", "a'b", "a\nb", "x&", ""} {
		a := webAllocation()
		a.Owner.Pod.Name = name
		a.Owner.Node = name
		s := situation{pools: []ipam.Pool{poolOf(a)}, pods: []census.Pod{showing(a.Owner.Pod, ip1)}, nodes: []census.Node{{Name: name}}}
		for _, r := range remediesOf(s.judge(t, noon)[0]) {
			if strings.HasPrefix(r.Command, "kubectl") {
				t.Errorf("the name %q is in %q", name, r.Command)
			}
		}
	}
}
