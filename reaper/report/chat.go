package report

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// chatTables returns the backends, the fullest pools, and a table of the entries of each
// urgency.
func chatTables(r reaper.Report, all bool) []table {
	found := []table{backendTable(r), fullestPools(r)}
	sorted := byUrgency(r.Entries)
	for u := failed; u <= inUse; u++ {
		part := r
		part.Entries = slices.DeleteFunc(slices.Clone(sorted), func(e reaper.Entry) bool { return urgencyOf(e) != u })
		t := entryTable(part, false, all)
		t.title, t.details = printable.Thousands(len(part.Entries))+" "+wordOf(u), true
		found = append(found, t)
	}
	return found
}

// fullestPools returns the ten networks and pools that have the largest part of their
// addresses in use. Those of unknown capacity are behind the others.
func fullestPools(r reaper.Report) table {
	const most = 10
	t := table{heading: []string{"POOL", "RANGE", "USED", "CAPACITY", "FULL", "LEAKED", "PROTECTED", "FREE"}}
	sorted := networksAndPools(r)
	slices.SortStableFunc(sorted, func(a, b reaper.PoolReport) int { return fullness(b).Cmp(fullness(a)) })
	if len(sorted) > most {
		t.title = fmt.Sprintf("The %d fullest of %s", most, counted(len(sorted), "pool"))
		sorted = sorted[:most]
	}
	for _, p := range sorted {
		t.rows = append(t.rows, []string{
			p.Name, p.Range, strconv.Itoa(p.Used), sizeOf(p.Capacity), percent(p.Usage), leakedIn(r, p),
			strconv.Itoa(p.Protected), sizeOf(p.Free),
		})
	}
	return t
}

// networksAndPools returns the networks, and the pools that are in none of them. A block of Calico
// that is full is nothing bad: its network has others.
func networksAndPools(r reaper.Report) []reaper.PoolReport {
	var places []reaper.PoolReport
	inNetwork := make(map[[2]string]bool)
	for _, n := range r.Networks {
		places = append(places, reaper.PoolReport{Backend: n.Backend, Name: n.Name, Range: n.Range, Usage: n.Usage})
		for _, pool := range n.Pools {
			inNetwork[[2]string{n.Backend, pool}] = true
		}
	}
	for _, p := range r.Pools {
		if !inNetwork[[2]string{p.Backend, p.Name}] {
			places = append(places, p)
		}
	}
	return places
}

// fullness returns the part of a pool's addresses that is used, or -1 if it is not known.
func fullness(p reaper.PoolReport) *big.Rat {
	if p.Capacity == nil || p.Capacity.Sign() <= 0 {
		return big.NewRat(-1, 1)
	}
	return new(big.Rat).SetFrac(big.NewInt(int64(p.Used)), p.Capacity)
}
