package metrics

import (
	"math/big"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// maxPools is the largest number of pools of one backend that have metrics of their
// own. Calico has one block or more for each node, and Prometheus keeps a series for
// each pool.
const maxPools = 100

// The labels of the sum of a backend's pools of one IP family. No pool has them.
const (
	allPools = "(all)"
	allIPv4  = "0.0.0.0/0"
	allIPv6  = "::/0"
)

// pools adds the metrics of the pools.
func (g gauges) pools(r report.Report) {
	const many = " For a backend with more than 100 pools there is only the sum of each IP family, as pool (all)."
	capacity := g.family("pool_capacity",
		"Addresses that pods can get of the pool, taken or not: without those that are reserved, excluded, or outside of what is handed out. Left out if the number is unknown."+many, labelBackend, labelPool, labelRange)
	allocated := g.family("pool_allocated",
		"Addresses of the pool that are allocated after the last run."+many, labelBackend, labelPool, labelRange)

	protected := g.family("pool_protected",
		"1 for a pool with addresses that no pod has, of which none is released since every address of the pool is protected; 0 for other pools."+many,
		labelBackend, labelPool, labelRange)

	pools := make(map[string]int, len(r.Backends))
	for _, p := range r.Pools {
		pools[p.Backend]++
	}
	unknown := make(map[[3]string]bool) // rows with a pool of unknown capacity
	for _, p := range r.Pools {
		if row := rowOf(p, pools); p.Capacity == nil {
			unknown[row] = true
		}
	}
	for _, p := range r.Pools {
		row := rowOf(p, pools)
		if !unknown[row] {
			capacity.add(float(p.Capacity), row[:]...)
		}
		allocated.add(float64(stillAllocated(r.Run, p)), row[:]...)
		protected.add(one(p.ProtectedBy != ""), row[:]...)
	}
}

// rowOf returns the labels for the metrics of a pool, which depend on the number of
// pools of its backend.
func rowOf(p report.PoolReport, pools map[string]int) [3]string {
	switch {
	case pools[p.Backend] <= maxPools:
		return [3]string{p.Backend, p.Name, p.Range}
	case strings.Contains(p.Range, ":"):
		return [3]string{p.Backend, allPools, allIPv6}
	default:
		return [3]string{p.Backend, allPools, allIPv4}
	}
}

// stillAllocated returns the number of addresses of the pool that the store still
// holds. After a dry run it is the number before: in the report of a dry run,
// AllocatedAfter has the planned releases subtracted.
func stillAllocated(run report.RunInfo, p report.PoolReport) int {
	if run.DryRun {
		return p.AllocatedBefore
	}
	return p.AllocatedAfter
}

// float returns the nearest float64.
func float(n *big.Int) float64 {
	f, _ := new(big.Float).SetInt(n).Float64()
	return f
}
