package metrics

import (
	"math/big"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// maxPools is how many pools of one backend have figures of their own. Calico has a
// block or more for each node, and each figure is a series that Prometheus keeps.
const maxPools = 100

// The labels of all pools of a backend together, which no pool has: all addresses
// of its family are their range.
const (
	allPools = "(all)"
	allIPv4  = "0.0.0.0/0"
	allIPv6  = "::/0"
)

// pools writes down how full the pools are.
func (s sheet) pools(r reaper.Report) {
	const many = " Of a backend with more than 100 pools there are only the sums, by family, as pool (all)."
	capacity := s.family("pool_capacity",
		"Addresses that the pool can give to pods. There is none where that is not known."+many, labelBackend, labelPool, labelRange)
	allocated := s.family("pool_allocated",
		"Addresses of the pool that are reserved after the last run."+many, labelBackend, labelPool, labelRange)

	pools := make(map[string]int, len(r.Backends))
	for _, p := range r.Pools {
		pools[p.Backend]++
	}
	unknown := make(map[[3]string]bool) // capacities
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
		allocated.add(float64(reserved(r.Run, p)), row[:]...)
	}
}

// rowOf returns the labels under which a pool is counted, by the number of pools of
// each backend.
func rowOf(p reaper.PoolReport, pools map[string]int) [3]string {
	switch {
	case pools[p.Backend] <= maxPools:
		return [3]string{p.Backend, p.Name, p.Range}
	case strings.Contains(p.Range, ":"):
		return [3]string{p.Backend, allPools, allIPv6}
	default:
		return [3]string{p.Backend, allPools, allIPv4}
	}
}

// reserved is how many addresses of the pool the store still holds. The report of a
// dry run counts as gone what a real one would release.
func reserved(run reaper.RunInfo, p reaper.PoolReport) int {
	if run.DryRun {
		return p.AllocatedBefore
	}
	return p.AllocatedAfter
}

// float is the nearest one.
func float(n *big.Int) float64 {
	f, _ := new(big.Float).SetInt(n).Float64()
	return f
}
