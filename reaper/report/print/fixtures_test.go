package print

import (
	"math/big"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// emptyReport is a run that found nothing.
func emptyReport() report.Report {
	return report.Report{
		APIVersion: policy.APIVersion,
		Kind:       "ReapReport",
		Run: report.RunInfo{
			ID: "20260301-120000-ABCDEF", StartedAt: noon, FinishedAt: noon.Add(1500 * time.Millisecond),
			DryRun: true, Origin: report.Origin{Version: "v1.2.3", Cluster: "https://10.0.0.1:6443", Context: "prod", StateNamespace: "ip-reaper"},
			Policy: report.PolicyInfo{GracePeriod: policy.Duration{Duration: 15 * time.Minute}, MinAge: policy.Duration{Duration: 5 * time.Minute}},
			Memory: true,
		},
		Leaked:   &report.Leaked{HeldBy: []report.ReasonCount{}, UndecidedBy: []report.ReasonCount{}},
		Backends: []report.BackendReport{},
		Findings: []report.Finding{},
		Layout:   report.Layout{Networks: []report.NetworkReport{}, Pools: []report.PoolReport{}},
		Entries:  []report.Entry{},
	}
}

// fullReport has a line for each kind of thing that a report can say.
func fullReport() report.Report {
	third := 30
	seen, due := noon.Add(-20*time.Minute), noon.Add(-5*time.Minute)
	later := noon.Add(15 * time.Minute)
	owner := func(pod string) ipam.EntryOwner {
		return ipam.EntryOwner{Namespace: "default", Pod: pod, Sandbox: "1e88fb5dec7c", Interface: "net1"}
	}
	const pools, pool, slice = "whereabouts", "kube-system/172.18.178.192-27", "kube-system/node-a-fd00---48"
	r := emptyReport()
	r.Run.DryRun, r.Run.Policy.File = false, "policy.yaml"
	r.Result = report.Result{ExitCode: 3, Error: "calico: list blocks: forbidden; whereabouts: 172.18.178.202: not decided: etcdserver: request timed out"}
	r.Leaked = &report.Leaked{Total: 6, Due: 2, Released: 1, Waiting: 1, Held: 2, HeldBy: []report.ReasonCount{{Reason: judge.OwnerUnknown, Count: 1}, {Reason: judge.RuleHold, Count: 1}}, UndecidedBy: []report.ReasonCount{}}
	r.Summary = report.Counts{Entries: 11, InUse: 2, Held: 3, Suspected: 1, Planned: 5, Released: 1, Changed: 2, Failed: 1}
	r.Backends = []report.BackendReport{
		{Name: pools, Status: ipam.StatusPartial, Message: "failed releases: 1", Counts: r.Summary},
		{Name: "overlapping", Status: ipam.StatusSkipped, Message: "not installed: no overlappingrangeipreservations.whereabouts.cni.cncf.io"},
		{Name: "calico", Status: ipam.StatusFailed, Message: "list blocks: forbidden"},
		{Name: "other", Status: ipam.StatusOK},
	}
	r.Pools = []report.PoolReport{
		{Backend: pools, Name: pool, Range: "172.18.178.192/27", AllocatedBefore: 10, AllocatedAfter: 9,
			Usage: report.Usage{Capacity: big.NewInt(30), Used: 9, Live: 2, Leaked: 5, Other: 2, Free: big.NewInt(21), FullPercent: &third}},
		{Backend: pools, Name: slice, Range: "fd00::/48", AllocatedBefore: 1, AllocatedAfter: 1,
			Usage: report.Usage{Capacity: capacityOf48(), Used: 1, Leaked: 1}},
		{Backend: pools, Name: "kube-system/x", Range: "10.0.0.0/8", AllocatedBefore: 0, AllocatedAfter: 0},
	}
	r.Entries = []report.Entry{
		{Backend: pools, Pool: pool, Key: "4", IP: "172.18.178.196", Owner: owner("web-0"), Verdict: judge.InUse, Reason: judge.PodPresent, Outcome: report.Kept},
		{Backend: pools, Pool: pool, Key: "5", IP: "172.18.178.197", Owner: owner("web-1"), Verdict: judge.InUse, Reason: judge.AddressInUse,
			Note: "shown by pod default/web-9", Outcome: report.Kept,
			Evidence: []judge.Evidence{{Source: "pod status", Says: "pod default/web-9 shows the address"}}},
		{Backend: pools, Pool: pool, Key: "6", IP: "172.18.178.198", Owner: owner("web-2"), Verdict: judge.Suspected, Reason: judge.PodAbsent,
			FirstSeen: &seen, Due: &later, Wait: 2 * time.Minute, Outcome: report.Kept, Address: &report.Address{Fate: report.Waiting}, Evidence: []judge.Evidence{
				{Source: "list of pods", Says: "the pod does not exist"}, {Source: "policy", Says: "the grace period is 15m"},
			}},
		{Backend: pools, Pool: pool, Key: "7", IP: "172.18.178.199", Owner: owner("web-3"), Verdict: judge.Orphaned, Reason: judge.PodAbsent,
			FirstSeen: &seen, Due: &due, Outcome: report.Released, Address: &report.Address{Fate: report.Released}},
		{Backend: pools, Pool: pool, Key: "8", IP: "172.18.178.200", Owner: owner("web-4"), Verdict: judge.Orphaned, Reason: judge.PodAbsent,
			FirstSeen: &seen, Due: &due, Outcome: report.Changed, Error: `the allocation changed hands: it is now {"id":"c9"}`},
		{Backend: pools, Pool: pool, Key: "9", IP: "172.18.178.201", Owner: owner("web-5"), Verdict: judge.Orphaned, Reason: judge.SandboxReplaced,
			Note: "the pod has 172.18.178.210", FirstSeen: &seen, Due: &due, Outcome: report.Returned, Error: "the owner came back: now PodPresent"},
		{Backend: pools, Pool: pool, Key: "10", IP: "172.18.178.202", Owner: owner("web-6"), Verdict: judge.Orphaned, Reason: judge.PodReplaced,
			FirstSeen: &seen, Due: &due, Outcome: report.Failed, Error: "not decided: etcdserver: request timed out"},
		{Backend: pools, Pool: pool, Key: "11", IP: "172.18.178.203", Owner: owner("web-7"), Verdict: judge.Orphaned, Reason: judge.PodFinished,
			FirstSeen: &seen, Due: &due, Outcome: report.Planned},
		{Backend: pools, Pool: pool, Key: "abc", Owner: ipam.EntryOwner{}, Verdict: judge.Held, Reason: judge.Unreadable,
			Note: `offset "abc" is not a plain decimal number`, Outcome: report.Kept},
		{Backend: pools, Pool: pool, Key: "12", IP: "172.18.178.204", Owner: ipam.EntryOwner{Sandbox: "8cb063d9cc07"}, Verdict: judge.Held,
			Reason: judge.OwnerUnknown, Note: "it names only a sandbox", Outcome: report.Kept},
		{Backend: pools, Pool: slice, Key: "18446744073709551621", IP: "fd00:0:0:1::5", Owner: ipam.EntryOwner{Namespace: "db", Pod: "pg-0", Node: "node-a"},
			Verdict: judge.Held, Reason: judge.RuleHold, Outcome: report.Kept},
	}
	r.Warnings = []string{"limits are ignored: limits.maxReleases: the plan would release 5 of 11 allocations, more than the allowed 2"}
	return r
}

// capacityOf48 is beyond 64 bits.
func capacityOf48() *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), 80)
	return n.Sub(n, big.NewInt(2))
}

// hostileReport has text with which a user who may write pool objects could deceive the
// reader of a report.
func hostileReport() report.Report {
	const hostile = "a|b\\|c\x1b[31mred\x1b[0m\ttab\nline\r\u202egpj\u2028\x7f\u0085\x00\xff<img src=x>[link](http://x)`code`*bold*_it_~s~#1 &amp; end"
	r := emptyReport()
	r.Summary = report.Counts{Entries: 2, Held: 2}
	r.Backends = []report.BackendReport{{Name: "whereabouts", Status: ipam.StatusPartial, Message: hostile, Counts: r.Summary}}
	r.Pools = []report.PoolReport{{Backend: "whereabouts", Name: hostile, Range: "10.0.0.0/24", Usage: report.Usage{Capacity: big.NewInt(254)}, AllocatedBefore: 2, AllocatedAfter: 2}}
	r.Entries = []report.Entry{
		{Backend: "whereabouts", Pool: hostile, Key: hostile, Owner: ipam.EntryOwner{Namespace: hostile, Pod: hostile, Sandbox: hostile, Interface: hostile, Node: hostile},
			Verdict: judge.Held, Reason: judge.Unreadable, Note: hostile, Outcome: report.Kept, Error: hostile},
		{Backend: "whereabouts", Pool: "p", Key: "1", IP: "10.0.0.1", Owner: ipam.EntryOwner{Pod: "| --- |\n| x |"},
			Verdict: judge.Held, Reason: judge.OwnerUnknown, Note: "---\nx: y\n# z", Outcome: report.Kept},
	}
	r.Warnings = []string{hostile}
	return r
}

// refusedReport is a real run whose plan two limits refused.
func refusedReport() report.Report {
	r := emptyReport()
	r.Run.DryRun = false
	r.Result = report.Result{ExitCode: 4, Error: "limits.maxReleases: the plan would release 2 of 3 allocations, more than the allowed 1; nothing was released", Refused: []judge.Refusal{
		{Limit: "limits.maxReleases", Message: "the plan would release 2 of 3 allocations, more than the allowed 1", Remedy: "review the plan; if it is right, raise limits.maxReleases"},
		{Limit: "limits.maxFraction", Message: "limits.maxFraction: the plan would release 0.67 of the allocations, more than the allowed 50 %", Remedy: "review the plan; if it is right, raise limits.maxFraction"},
	}}
	r.Leaked = &report.Leaked{Total: 2, Due: 2, HeldBy: []report.ReasonCount{}, UndecidedBy: []report.ReasonCount{}}
	r.Summary = report.Counts{Entries: 3, InUse: 1, Planned: 2}
	r.Backends = []report.BackendReport{{Name: "calico", Status: ipam.StatusOK, Counts: r.Summary}}
	due := noon.Add(-time.Hour)
	for _, ip := range []string{"10.1.0.9", "10.1.0.10"} {
		r.Entries = append(r.Entries, report.Entry{Backend: "calico", Pool: "10-1-0-0-26", Key: ip, IP: ip, Owner: ipam.EntryOwner{Namespace: "shop", Pod: "web"},
			Verdict: judge.Orphaned, Reason: judge.PodAbsent, Leaked: true, FirstSeen: &due, Due: &due, Outcome: report.Kept})
	}
	return r
}
