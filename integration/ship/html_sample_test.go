package ship_test

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// A kind is a way in which a run can leave an allocation.
type kind struct {
	verdict judge.Verdict
	reason  judge.Reason
	outcome report.Fate
	leaked  bool
	weight  int // how often the pools of the sample have it
	note    string
	source  string
	says    string
}

// kinds have every verdict and every outcome of a run that released.
var kinds = []kind{
	{judge.InUse, judge.PodPresent, report.Kept, false, 700, "", "list of pods", "the pod exists with the same UID on the same node"},
	{judge.InUse, judge.AddressInUse, report.Kept, false, 4, "another pod shows it", "pod status", "pod shop/cart-7 shows the address"},
	{judge.Orphaned, judge.PodAbsent, report.Released, true, 60, "", "list of pods", "the pod does not exist"},
	{judge.Orphaned, judge.SandboxReplaced, report.Released, true, 12, "the pod has another address", "pod status", "the pod shows the address of a later sandbox"},
	{judge.Orphaned, judge.PodReplaced, report.Failed, true, 8, "", "list of pods", "a pod of that name exists, its UID is another"},
	{judge.Orphaned, judge.PodAbsent, report.Changed, true, 6, "", "list of pods", "the pod does not exist"},
	{judge.Orphaned, judge.PodAbsent, report.Returned, true, 6, "", "list of pods", "the pod does not exist"},
	{judge.Suspected, judge.PodAbsent, report.Kept, true, 45, "", "list of pods", "the pod does not exist"},
	{judge.Suspected, judge.PodFinished, report.Kept, true, 9, "", "pod status", "the phase is Succeeded"},
	{judge.Held, judge.NodeUnreachable, report.Kept, true, 38, "node worker-7 is not ready since 2026-03-01T11:13:00Z", "node worker-7", "it is not ready since 2026-03-01T11:13:00Z"},
	{judge.Held, judge.RuleHold, report.Kept, true, 11, `rules[2] "databases"`, "policy", "a rule holds all addresses of namespace db"},
	{judge.Held, judge.NotPodOwned, report.Kept, false, 12, "", "store", "the handle is that of a tunnel of the node"},
}

var namespaces = []string{"shop", "db", "checkout", "monitoring", "kube-system", "batch", "edge"}

// A sample has the findings of a report that is being made.
type sample struct {
	report.Results
	random *rand.Rand
	dryRun bool
}

// newSample returns a report without pools. A dry run plans the releases of the kinds.
func newSample(dryRun bool) *sample {
	s := &sample{random: rand.New(rand.NewPCG(7, 14)), dryRun: dryRun}
	s.Outcomes = make(map[int]report.Done)
	s.HasTimes = func(*judge.Decision) bool { return true }
	s.Run = report.RunInfo{
		ID: "20260301-120000-ABCDEF", StartedAt: noon, FinishedAt: noon.Add(1400 * time.Millisecond), DryRun: dryRun,
		Origin: report.Origin{Version: "v1.2.3", Cluster: "https://api.prod-eu1.example.com:6443", Program: "ip-reaper", Context: "prod-eu1", StateNamespace: "ip-reaper"},
		Policy: report.PolicyInfo{File: "/etc/ip-reaper/policy.yaml", GracePeriod: policy.Duration{Duration: 15 * time.Minute}, MinAge: policy.Duration{Duration: 5 * time.Minute}},
		Memory: true,
	}
	return s
}

// network adds a network over the pools of that name prefix.
func (s *sample) network(backend, name, prefix string, capacity int64, closed string, pools ...string) {
	n := report.NetworkReport{Backend: backend, Name: name, Range: prefix, Pools: pools, Closed: closed}
	n.Capacity = big.NewInt(capacity)
	if p, err := netip.ParsePrefix(prefix); err == nil {
		n.Usable = ipam.NewSpans(ipam.SpanOf(p))
	}
	s.Layout.Networks = append(s.Layout.Networks, n)
}

// pool adds a pool of a range, of which a part is allocated in runs of addresses.
func (s *sample) pool(backend, name, prefix, node string, part float64) {
	p := netip.MustParsePrefix(prefix)
	size := 1 << min(16, p.Addr().BitLen()-p.Bits())
	report := report.PoolReport{Backend: backend, Name: name, Range: prefix, Node: node}
	report.Capacity = big.NewInt(int64(size - 2))
	if p.Addr().BitLen()-p.Bits() > 16 {
		report.Capacity.Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
		size = 96
	}
	ip, last := p.Addr(), kinds[0]
	for i := range size {
		if i == 0 || i == size-1 {
			ip = ip.Next()
			continue
		}
		if taken := s.random.Float64(); taken < part {
			if s.random.IntN(4+size/800) == 0 { // a large pool has long runs
				last = s.anyKind()
			} else if s.random.IntN(3+size/2500) == 0 {
				last = kinds[0]
			}
			s.add(&report, i, ip, node, last)
		}
		ip = ip.Next()
	}
	s.Layout.Pools = append(s.Layout.Pools, report)
}

func (s *sample) anyKind() kind {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	at := s.random.IntN(total)
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { at -= k.weight; return at < 0 })]
}

// add adds an allocation to a pool and to the findings.
func (s *sample) add(p *report.PoolReport, i int, ip netip.Addr, node string, k kind) {
	if node == "" {
		node = fmt.Sprintf("worker-%d", 1+s.random.IntN(12))
	}
	namespace := namespaces[s.random.IntN(len(namespaces))]
	d := judge.Decision{
		Allocation: &ipam.Allocation{
			Backend: p.Backend, Pool: p.Name, Key: fmt.Sprint(i), IP: ip,
			Owner: ipam.Owner{
				Pod:     ipam.PodRef{Namespace: namespace, Name: fmt.Sprintf("%s-%d", []string{"web", "worker", "cache", "api"}[i%4], i)},
				Sandbox: strings.Repeat("1e88fb5dec7c84a0", 4), Interface: "eth0", Node: node,
			},
		},
		Ruling: judge.Ruling{Verdict: k.verdict, Reason: k.reason, Ownerless: k.leaked, Note: k.note, Evidence: []judge.Evidence{{Source: k.source, Says: k.says}}},
	}
	if k.verdict == judge.Suspected || k.verdict == judge.Orphaned {
		d.FirstSeen = noon.Add(-time.Duration(1+s.random.IntN(14)) * time.Minute)
		if k.verdict == judge.Orphaned {
			d.FirstSeen = d.FirstSeen.Add(-3 * time.Hour)
		}
		d.Due = d.FirstSeen.Add(15 * time.Minute)
	}
	done := report.Done{Outcome: k.outcome}
	switch {
	case k.verdict == judge.Orphaned && s.dryRun:
		done.Outcome = report.Planned
	case k.outcome == report.Failed:
		done.Err = errors.New("etcdserver: request timed out")
	case k.outcome == report.Changed:
		done.Err = errors.New("the allocation changed hands")
	case k.outcome == report.Returned:
		done.Err = errors.New("the owner came back: now PodPresent")
	}
	p.AllocatedBefore++
	s.Outcomes[len(s.Verdicts.Decisions)] = done
	s.Verdicts.Decisions = append(s.Verdicts.Decisions, d)
}

// find adds a finding of the default network, about pods by namespace/name.
func (s *sample) find(kind report.FindingKind, ip, stored string, pods ...string) {
	f := report.Finding{Kind: kind, IP: ip, Backend: "calico", Network: "default-ipv4-ippool", Recorded: stored != "", Stored: []string{}}
	if stored != "" {
		f.Stored = append(f.Stored, stored)
	}
	for i, pod := range pods {
		namespace, name, _ := strings.Cut(pod, "/")
		f.Claims = append(f.Claims, report.ShownBy{Namespace: namespace, Pod: name, Node: fmt.Sprintf("worker-%d", 4+i), Source: "pod status", Proved: true})
	}
	s.Found = append(s.Found, f)
	s.Warnings = append(s.Warnings, f.String())
}

// finish makes the report, as a run does.
func (s *sample) finish() report.Report {
	for _, d := range s.Verdicts.Decisions {
		backend := d.Allocation.Backend
		if !slices.ContainsFunc(s.Inventory.Listings, func(l ipam.Listing) bool { return l.Backend == backend }) {
			s.Inventory.Listings = append(s.Inventory.Listings, ipam.Listing{Backend: backend, Status: ipam.StatusOK})
		}
	}
	return report.Make(s.Results)
}

// sampleReport is a run on a cluster with Calico and Whereabouts, in both families, that
// has every verdict and every outcome.
func sampleReport(dryRun bool) report.Report {
	s := newSample(dryRun)
	var blocks, blocks6 []string
	for i := range 14 {
		prefix := fmt.Sprintf("10.244.%d.%d/26", 64+i/4, i%4*64)
		s.pool("calico", prefix, prefix, fmt.Sprintf("worker-%d", 1+i%12), 0.93-0.05*float64(i))
		blocks = append(blocks, prefix)
	}
	for i := range 2 {
		prefix := fmt.Sprintf("fd00:10:244:%d::/122", i)
		s.pool("calico", prefix, prefix, fmt.Sprintf("worker-%d", 3+i), 0.5-0.2*float64(i))
		blocks6 = append(blocks6, prefix)
	}
	s.network("calico", "default-ipv4-ippool", "10.244.64.0/22", 1024, "", blocks...)
	s.network("calico", "default-ipv6-ippool", "fd00:10:244::/56", 1<<50, "disabled", blocks6...)

	const wb = "whereabouts"
	s.pool(wb, "kube-system/10.56.0.0-22", "10.56.0.0/22", "", 0.97)
	s.pool(wb, "kube-system/172.18.178.0-24", "172.18.178.0/24", "", 0.62)
	s.pool(wb, "kube-system/172.18.179.192-27", "172.18.179.192/27", "", 0.4)
	s.pool(wb, "kube-system/fd00-cafe---64", "fd00:cafe::/64", "", 0.8)
	others := kinds
	kinds = []kind{kinds[0], {judge.Held, judge.Protected, report.Kept, true, 700, "", "protection", "reservedips shop/lan may name it"}}
	s.pool(wb, "kube-system/192.168.40.0-24", "192.168.40.0/24", "", 0.25)
	kinds = others
	s.ProtectedBy = map[ipam.PoolRef]string{{Backend: wb, Name: "kube-system/192.168.40.0-24"}: "reservedips shop/lan may name it"}
	s.network(wb, "10.56.0.0/22", "10.56.0.0/22", 1022, "", "kube-system/10.56.0.0-22")
	s.find(report.Duplicate, "10.244.64.9", "shop/web-9", "shop/web-9", "pay/api-3")
	s.find(report.Unrecorded, "10.244.67.3", "", "shop/cache-3")
	s.find(report.Unrecorded, "10.244.67.70", "", "batch/worker-70")
	s.Warnings = append(s.Warnings,
		"nothing is released from whereabouts kube-system/192.168.40.0-24, because every address is protected: reservedips shop/lan may name it",
		"node worker-7 is unreachable: 38 addresses of its pods are kept until it is ready, deleted or fenced",
	)
	return s.finish()
}

// refusedReport is a run whose plan two limits refused.
func refusedReport() report.Report {
	r := sampleReport(true)
	r.Run.DryRun = false
	for i := range r.Entries {
		if r.Entries[i].Outcome == report.Planned {
			r.Entries[i].Outcome = report.Refused
		}
	}
	r.Result = report.Result{ExitCode: 4, Error: "the plan is refused", Refused: []judge.Refusal{
		{Limit: "limits.maxReleases", Message: "the plan would release 180 of 1,902 allocations, more than the allowed 100", Remedy: "Look at the entries that are due, then raise limits.maxReleases in the policy."},
		{Limit: "limits.maxPodDrop", Message: "61 % of the pods are gone since the last run, allowed are 50 %", Remedy: "If the pods were deleted on purpose, raise limits.maxPodDrop for one run."},
	}}
	return r
}

// largeReport has a pool of 65,536 addresses.
func largeReport() report.Report {
	s := newSample(true)
	s.pool("whereabouts", "kube-system/10.128.0.0-16", "10.128.0.0/16", "", 0.86)
	return s.finish()
}
