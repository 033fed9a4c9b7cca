package print

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// emptyReport is a run that found nothing.
func emptyReport() reaper.Report {
	return reaper.Report{
		APIVersion: policy.APIVersion,
		Kind:       "ReapReport",
		Run: reaper.RunInfo{
			ID: "20260301-120000-ABCDEF", StartedAt: noon, FinishedAt: noon.Add(1500 * time.Millisecond),
			DryRun: true, Version: "v1.2.3", Cluster: "https://10.0.0.1:6443", Context: "prod", StateNamespace: "ip-reaper",
			Policy: reaper.PolicyInfo{GracePeriod: policy.Duration{Duration: 15 * time.Minute}, MinAge: policy.Duration{Duration: 5 * time.Minute}},
			Memory: true,
		},
		Leaked:   &reaper.Leaked{HeldBy: []reaper.ReasonCount{}},
		Backends: []reaper.BackendReport{},
		Networks: []reaper.NetworkReport{},
		Pools:    []reaper.PoolReport{},
		Entries:  []reaper.Entry{},
	}
}

// fullReport has a line for each kind of thing that a report can say.
func fullReport() reaper.Report {
	seen, due := noon.Add(-20*time.Minute), noon.Add(-5*time.Minute)
	later := noon.Add(15 * time.Minute)
	owner := func(pod string) reaper.EntryOwner {
		return reaper.EntryOwner{Namespace: "default", Pod: pod, Sandbox: "1e88fb5dec7c", Interface: "net1"}
	}
	const pools, pool, slice = "whereabouts", "kube-system/172.18.178.192-27", "kube-system/node-a-fd00---48"
	r := emptyReport()
	r.Run.DryRun, r.Run.Policy.File = false, "policy.yaml"
	r.Result = reaper.Result{ExitCode: 3, Error: "calico: list blocks: forbidden; whereabouts: 172.18.178.202: not decided: etcdserver: request timed out"}
	r.Leaked = &reaper.Leaked{Total: 6, Due: 2, Released: 1, Waiting: 1, Held: 2, HeldBy: []reaper.ReasonCount{{Reason: reaper.OwnerUnknown, Count: 1}, {Reason: reaper.RuleHold, Count: 1}}}
	r.Summary = reaper.Counts{Entries: 11, InUse: 2, Held: 3, Suspected: 1, Planned: 5, Released: 1, Changed: 2, Failed: 1}
	r.Backends = []reaper.BackendReport{
		{Name: pools, Status: reaper.StatusPartial, Message: "failed releases: 1", Counts: r.Summary},
		{Name: "overlapping", Status: reaper.StatusSkipped, Message: "the store is not installed here: no overlappingrangeipreservations.whereabouts.cni.cncf.io"},
		{Name: "calico", Status: reaper.StatusFailed, Message: "list blocks: forbidden"},
		{Name: "other", Status: reaper.StatusOK},
	}
	r.Pools = []reaper.PoolReport{
		{Backend: pools, Name: pool, Range: "172.18.178.192/27", AllocatedBefore: 10, AllocatedAfter: 9,
			Usage: reaper.Usage{Capacity: big.NewInt(30), Used: 9, Live: 2, Leaked: 5, Other: 2, Free: big.NewInt(21)}},
		{Backend: pools, Name: slice, Range: "fd00::/48", AllocatedBefore: 1, AllocatedAfter: 1,
			Usage: reaper.Usage{Capacity: capacityOf48(), Used: 1, Leaked: 1}},
		{Backend: pools, Name: "kube-system/x", Range: "10.0.0.0/8", AllocatedBefore: 0, AllocatedAfter: 0},
	}
	r.Entries = []reaper.Entry{
		{Backend: pools, Pool: pool, Key: "4", IP: "172.18.178.196", Owner: owner("web-0"), Verdict: reaper.InUse, Reason: reaper.PodPresent, Outcome: reaper.Kept},
		{Backend: pools, Pool: pool, Key: "5", IP: "172.18.178.197", Owner: owner("web-1"), Verdict: reaper.InUse, Reason: reaper.AddressInUse,
			Note: "shown by pod default/web-9", Outcome: reaper.Kept,
			Evidence: []reaper.Evidence{{Source: "pod status", Says: "pod default/web-9 shows the address"}}},
		{Backend: pools, Pool: pool, Key: "6", IP: "172.18.178.198", Owner: owner("web-2"), Verdict: reaper.Suspected, Reason: reaper.PodAbsent,
			FirstSeen: &seen, Due: &later, Outcome: reaper.Kept, Evidence: []reaper.Evidence{
				{Source: "list of pods", Says: "the pod does not exist"}, {Source: "policy", Says: "the grace period is 15m"},
			}},
		{Backend: pools, Pool: pool, Key: "7", IP: "172.18.178.199", Owner: owner("web-3"), Verdict: reaper.Orphaned, Reason: reaper.PodAbsent,
			FirstSeen: &seen, Due: &due, Outcome: reaper.Released},
		{Backend: pools, Pool: pool, Key: "8", IP: "172.18.178.200", Owner: owner("web-4"), Verdict: reaper.Orphaned, Reason: reaper.PodAbsent,
			FirstSeen: &seen, Due: &due, Outcome: reaper.Changed, Error: `the allocation changed hands: it is now {"id":"c9"}`},
		{Backend: pools, Pool: pool, Key: "9", IP: "172.18.178.201", Owner: owner("web-5"), Verdict: reaper.Orphaned, Reason: reaper.SandboxReplaced,
			Note: "the pod has 172.18.178.210", FirstSeen: &seen, Due: &due, Outcome: reaper.Returned, Error: "the owner came back: now PodPresent"},
		{Backend: pools, Pool: pool, Key: "10", IP: "172.18.178.202", Owner: owner("web-6"), Verdict: reaper.Orphaned, Reason: reaper.PodReplaced,
			FirstSeen: &seen, Due: &due, Outcome: reaper.Failed, Error: "not decided: etcdserver: request timed out"},
		{Backend: pools, Pool: pool, Key: "11", IP: "172.18.178.203", Owner: owner("web-7"), Verdict: reaper.Orphaned, Reason: reaper.PodFinished,
			FirstSeen: &seen, Due: &due, Outcome: reaper.Planned},
		{Backend: pools, Pool: pool, Key: "abc", Owner: reaper.EntryOwner{}, Verdict: reaper.Held, Reason: reaper.Unreadable,
			Note: `offset "abc" is not a plain decimal number`, Outcome: reaper.Kept},
		{Backend: pools, Pool: pool, Key: "12", IP: "172.18.178.204", Owner: reaper.EntryOwner{Sandbox: "8cb063d9cc07"}, Verdict: reaper.Held,
			Reason: reaper.OwnerUnknown, Note: "it names a sandbox only", Outcome: reaper.Kept},
		{Backend: pools, Pool: slice, Key: "18446744073709551621", IP: "fd00:0:0:1::5", Owner: reaper.EntryOwner{Namespace: "db", Pod: "pg-0", Node: "node-a"},
			Verdict: reaper.Held, Reason: reaper.RuleHold, Outcome: reaper.Kept},
	}
	r.Warnings = []string{"limits are ignored: limits.maxReleases: the plan releases 5 of 11 allocations, allowed is 2"}
	return r
}

// capacityOf48 is beyond 64 bits.
func capacityOf48() *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), 80)
	return n.Sub(n, big.NewInt(2))
}

// hostileReport has text with which a user who may write pool objects could deceive the
// reader of a report.
func hostileReport() reaper.Report {
	const hostile = "a|b\\|c\x1b[31mred\x1b[0m\ttab\nline\r\u202egpj\u2028\x7f\u0085\x00\xff<img src=x>[link](http://x)`code`*bold*_it_~s~#1 &amp; end"
	r := emptyReport()
	r.Summary = reaper.Counts{Entries: 2, Held: 2}
	r.Backends = []reaper.BackendReport{{Name: "whereabouts", Status: reaper.StatusPartial, Message: hostile, Counts: r.Summary}}
	r.Pools = []reaper.PoolReport{{Backend: "whereabouts", Name: hostile, Range: "10.0.0.0/24", Usage: reaper.Usage{Capacity: big.NewInt(254)}, AllocatedBefore: 2, AllocatedAfter: 2}}
	r.Entries = []reaper.Entry{
		{Backend: "whereabouts", Pool: hostile, Key: hostile, Owner: reaper.EntryOwner{Namespace: hostile, Pod: hostile, Sandbox: hostile, Interface: hostile, Node: hostile},
			Verdict: reaper.Held, Reason: reaper.Unreadable, Note: hostile, Outcome: reaper.Kept, Error: hostile},
		{Backend: "whereabouts", Pool: "p", Key: "1", IP: "10.0.0.1", Owner: reaper.EntryOwner{Pod: "| --- |\n| x |"},
			Verdict: reaper.Held, Reason: reaper.OwnerUnknown, Note: "---\nx: y\n# z", Outcome: reaper.Kept},
	}
	r.Warnings = []string{hostile}
	return r
}

// refusedReport is a real run whose plan two limits refused.
func refusedReport() reaper.Report {
	r := emptyReport()
	r.Run.DryRun = false
	r.Result = reaper.Result{ExitCode: 4, Error: "limits.maxReleases: the plan releases 2 of 3 allocations, allowed is 1; nothing was released", Refused: []reaper.Refusal{
		{Limit: "limits.maxReleases", Message: "the plan releases 2 of 3 allocations, allowed is 1", Remedy: "look at the plan; if it is right, raise limits.maxReleases"},
		{Limit: "limits.maxFraction", Message: "limits.maxFraction: the plan releases 0.67 of the allocations, allowed is 0.5", Remedy: "look at the plan; if it is right, raise limits.maxFraction"},
	}}
	r.Leaked = &reaper.Leaked{Total: 2, Due: 2, HeldBy: []reaper.ReasonCount{}}
	r.Summary = reaper.Counts{Entries: 3, InUse: 1, Planned: 2}
	r.Backends = []reaper.BackendReport{{Name: "calico", Status: reaper.StatusOK, Counts: r.Summary}}
	due := noon.Add(-time.Hour)
	for _, ip := range []string{"10.1.0.9", "10.1.0.10"} {
		r.Entries = append(r.Entries, reaper.Entry{Backend: "calico", Pool: "10-1-0-0-26", Key: ip, IP: ip, Owner: reaper.EntryOwner{Namespace: "shop", Pod: "web"},
			Verdict: reaper.Orphaned, Reason: reaper.PodAbsent, Leaked: true, FirstSeen: &due, Due: &due, Outcome: reaper.Kept})
	}
	return r
}

// largeReport is a dry run on a cluster in an outage: long names, many blocks, thousands of
// allocations. Its counts agree.
func largeReport() reaper.Report {
	r := emptyReport()
	r.Run.Cluster = "https://0123456789ABCDEF0123456789ABCDEF.gr7.eu-central-1.eks.amazonaws.com"
	r.Run.Context = "arn:aws:eks:eu-central-1:123456789012:cluster/production"
	r.Leaked = &reaper.Leaked{}
	reasons := []reaper.Reason{reaper.PodAbsent, reaper.NodeUnreachable, reaper.OutOfScope, reaper.PodPresent, reaper.PodReplaced}
	verdicts := []reaper.Verdict{reaper.Orphaned, reaper.Held, reaper.Held, reaper.InUse, reaper.Suspected}
	for pool := range 60 {
		p := reaper.PoolReport{Backend: "calico", Name: fmt.Sprintf("10-244-%d-0-26", pool), Range: fmt.Sprintf("10.244.%d.0/26", pool)}
		p.Capacity = big.NewInt(64)
		for i := range pool % 40 {
			kind := i % len(reasons)
			if pool%3 == 0 {
				kind = 3
			}
			e := reaper.Entry{
				Backend: "calico", Pool: p.Name, Key: fmt.Sprint(i), IP: fmt.Sprintf("10.244.%d.%d", pool, i),
				Owner: reaper.EntryOwner{
					Namespace: "payments-production", Pod: fmt.Sprintf("checkout-%s-%05d", strings.Repeat("x", 48), 100*pool+i),
					Sandbox: strings.Repeat("0123456789abcdef", 4), Interface: "eth0", Node: fmt.Sprintf("ip-10-0-%d-17.eu-central-1.compute.internal", pool%7),
				},
				Verdict: verdicts[kind], Reason: reasons[kind], Outcome: reaper.Kept, Leaked: kind < 2 || kind == 4,
			}
			if e.Verdict == reaper.Orphaned {
				e.Outcome = reaper.Planned
			}
			if e.Verdict == reaper.Suspected {
				later := noon.Add(time.Duration(pool) * time.Minute)
				e.FirstSeen, e.Due = &noon, &later
			}
			p.Used++
			p.AllocatedBefore++
			if e.Outcome == reaper.Kept {
				p.AllocatedAfter++
			}
			if e.Leaked {
				p.Leaked++
			} else {
				p.Live++
			}
			count(&r, e)
			r.Entries = append(r.Entries, e)
		}
		p.Free = big.NewInt(int64(64 - p.Used))
		r.Pools = append(r.Pools, p)
	}
	r.Leaked.HeldBy = []reaper.ReasonCount{{Reason: reaper.NodeUnreachable, Count: r.Leaked.Held}}
	r.Backends = []reaper.BackendReport{
		{Name: "calico", Status: reaper.StatusOK, Counts: r.Summary},
		{Name: "whereabouts", Status: reaper.StatusSkipped, Message: "the store is not installed here: no ippools.whereabouts.cni.cncf.io"},
	}
	return r
}

// count adds an entry to the counts of a dry run.
func count(r *reaper.Report, e reaper.Entry) {
	r.Summary.Entries++
	switch e.Verdict {
	case reaper.Orphaned:
		r.Summary.Planned++
		r.Leaked.Due++
	case reaper.Suspected:
		r.Summary.Suspected++
		r.Leaked.Waiting++
	case reaper.InUse:
		r.Summary.InUse++
	default:
		r.Summary.Held++
		if e.Leaked {
			r.Leaked.Held++
		}
	}
	if e.Leaked {
		r.Leaked.Total++
	}
}
