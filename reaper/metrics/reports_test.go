package metrics_test

import (
	"fmt"
	"math/big"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// runInfo is that of a run of 2.5 seconds.
func runInfo(dryRun bool) report.RunInfo {
	began := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	return report.RunInfo{StartedAt: began, FinishedAt: began.Add(2500 * time.Millisecond), DryRun: dryRun, Origin: report.Origin{Version: "v1.2.3"}}
}

// everything is the report of a run that has a metric of every name.
func everything() report.Report {
	return report.Report{
		Run:     runInfo(false),
		Leaked:  &report.Leaked{Total: 14, Due: 5, Released: 4, Waiting: 3, Held: 2},
		Totals:  &ledger.Totals{Released: map[string]uint64{"whereabouts": 40, "gone": 2}, Runs: map[string]uint64{"done": 7, "refused": 1}},
		Entries: leaks(map[string]int{"node-a": 6, "node-b": 3, "": 1}),
		Layout: report.Layout{Networks: []report.NetworkReport{
			{Backend: "whereabouts", Name: "10.0.0.0-24", Range: "10.0.0.0/24", Usage: report.Usage{Capacity: big.NewInt(254), Used: 11, Leaked: 7, Unrecorded: 1, Free: big.NewInt(242)}, Parts: []report.AttachedPart{
				{Attachments: []string{"shop/lan"}, Ranges: []string{"10.0.0.1 to 10.0.0.4", "10.0.0.9 to 10.0.0.9"}, Usage: report.Usage{Capacity: big.NewInt(5), Free: big.NewInt(1)}},
				{Attachments: []string{"shop/wan"}, Ranges: []string{"10.0.0.5 to 10.0.0.8"}, Usage: report.Usage{Capacity: big.NewInt(4)}},
			}},
			{Backend: "whereabouts", Name: "unknown", Range: "10.1.0.0/24", Usage: report.Usage{Used: 1}},
			{Backend: "whereabouts", Name: "partial", Range: "10.2.0.0/24", Usage: report.Usage{Capacity: big.NewInt(254)}, Partial: true},
			{Backend: "calico", Name: "blocks", Range: "10.4.0.0/24", Usage: report.Usage{Capacity: big.NewInt(256), Free: big.NewInt(243)}, Blocks: &report.Blocks{
				Room: 3, Full: 2, Missing: 1, Unclaimed: new(big.Int), NodesWithoutRoom: new(int),
			}},
			{Backend: "calico", Name: "closed", Range: "10.3.0.0/24", Usage: report.Usage{Capacity: big.NewInt(256), Used: 2, Leaked: 1, Free: new(big.Int)}, Closed: "disabled"},
		}, Pools: []report.PoolReport{
			{Backend: "whereabouts", Name: "kube-system/10.0.0.0-24", Range: "10.0.0.0/24", Usage: report.Usage{Capacity: big.NewInt(254), Used: 11}},
			{Backend: "whereabouts", Name: "kube-system/unknown", Range: "10.1.0.0/24", Usage: report.Usage{Used: 1}, ProtectedBy: "reservedIPs could not be read"},
		}},
		Backends: []report.BackendReport{
			{Name: "whereabouts", Status: ipam.StatusOK, Undecoded: []string{"network attachment shop/lan: no JSON", "network attachment shop/wan: no JSON"},
				Counts: report.Counts{Entries: 15, InUse: 1, Held: 2, Suspected: 3, Planned: 9, Released: 4, Changed: 3, Failed: 2}},
			{Name: "overlapping", Status: ipam.StatusPartial, Counts: report.Counts{Entries: 1, InUse: 1}},
			{Name: "calico", Status: ipam.StatusFailed},
			{Name: "reservedIPs", Status: ipam.StatusSkipped},
		},
	}
}

// leaks are the entries of leaked addresses, as many as each node has, and of one that was released.
func leaks(ofNodes map[string]int) []report.Entry {
	entries := []report.Entry{{Owner: ipam.EntryOwner{Node: "node-a"}, Address: &report.Address{Fate: report.Released}}}
	for node, n := range ofNodes {
		for range n {
			a := &report.Address{Fate: report.Waiting} // in two stores, of which the second knows the node
			entries = append(entries, report.Entry{Address: a}, report.Entry{Owner: ipam.EntryOwner{Node: node}, Address: a})
		}
	}
	return entries
}

// dryRun is the report of a run that would have released what its pool has.
func dryRun() report.Report {
	return report.Report{
		Run:      runInfo(true),
		Backends: []report.BackendReport{{Name: "calico", Status: ipam.StatusOK, Counts: report.Counts{Entries: 3, InUse: 1, Planned: 2}}},
		Layout: report.Layout{Pools: []report.PoolReport{
			{Backend: "calico", Name: "10.2.0.0/26", Range: "10.2.0.0/26", Usage: report.Usage{Capacity: big.NewInt(64), Used: 3}, AllocatedBefore: 3, AllocatedAfter: 1},
		}},
	}
}

// noCensus is the report of a run that could not list the pods.
func noCensus() report.Report {
	return report.Report{
		Run: runInfo(false),
		Backends: []report.BackendReport{
			{Name: "whereabouts", Status: ipam.StatusOK, Counts: report.Counts{Entries: 1, Held: 1}},
			{Name: "calico", Status: ipam.StatusSkipped},
		},
		Layout: report.Layout{Pools: []report.PoolReport{
			{Backend: "whereabouts", Name: "a", Range: "10.0.0.0/24", Usage: report.Usage{Capacity: big.NewInt(254), Used: 1}},
		}, Networks: []report.NetworkReport{
			{Backend: "whereabouts", Name: "a", Range: "10.0.0.0/24", Usage: report.Usage{Capacity: big.NewInt(254), Used: 1, Free: big.NewInt(253)}},
		}},
		Entries: []report.Entry{{Backend: "whereabouts", Reason: judge.NoCensus}},
	}
}

// failedLate is the report of a run that released something, waited, and could not list
// the store again.
func failedLate() report.Report {
	return report.Report{
		Run: runInfo(false),
		Backends: []report.BackendReport{
			{Name: "whereabouts", Status: ipam.StatusFailed, Counts: report.Counts{Entries: 2, Planned: 2, Released: 2}},
		},
	}
}

// manyPools is the report of a run with this many pools of one backend, and one of
// IPv6 if there are too many.
func manyPools(n int) report.Report {
	r := report.Report{Run: runInfo(false)}
	for i := range n {
		p := report.PoolReport{
			Backend: "calico", Name: fmt.Sprint("block-", i), Range: fmt.Sprintf("10.%d.%d.0/26", i/256, i%256),
			Usage: report.Usage{Capacity: big.NewInt(64), Used: 9},
		}
		if i == n-1 && n > 100 {
			p.Range = "fd00::/122"
		}
		r.Pools = append(r.Pools, p)
	}
	return r
}

// oddNames is the report of a run with names that are not valid in a label, and with
// two pools of one name.
func oddNames() report.Report {
	return report.Report{
		Run:      runInfo(false),
		Backends: []report.BackendReport{{Name: "a\xffb", Status: ipam.StatusOK}},
		Layout: report.Layout{Pools: []report.PoolReport{
			{Backend: "calico", Name: "quoted\"\n\\", Range: "10.0.0.0/24", Usage: report.Usage{Used: 1}},
			{Backend: "calico", Name: "twice", Range: "10.0.0.0/24", Usage: report.Usage{Capacity: big.NewInt(254), Used: 1}},
			{Backend: "calico", Name: "twice", Range: "10.0.0.0/24", Usage: report.Usage{Capacity: big.NewInt(254), Used: 2}},
		}},
	}
}
