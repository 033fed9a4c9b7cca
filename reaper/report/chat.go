package report

import (
	"fmt"
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

// fullestPools returns the ten fullest networks and pools, in the order of WritePools.
func fullestPools(r reaper.Report) table {
	const most = 10
	t := table{heading: []string{"POOL", "RANGE", "USED", "CAPACITY", "FULL", "LEAKED", "PROTECTED", "FREE"}}
	sorted := networksAndPools(r)
	slices.SortStableFunc(sorted, func(a, b place) int { return byFullness(a.Usage, b.Usage, a.closed, b.closed) })
	if len(sorted) > most {
		t.title = fmt.Sprintf("The %d fullest of %s", most, counted(len(sorted), "pool"))
		sorted = sorted[:most]
	}
	for _, p := range sorted {
		t.rows = append(t.rows, []string{
			p.Name, p.Range, strconv.Itoa(p.Used), sizeOf(p.Capacity), percent(p.Usage), leakedIn(r, p.PoolReport),
			strconv.Itoa(p.Protected), sizeOf(p.Free),
		})
	}
	return t
}

// A place is a network, or a pool that is in none.
type place struct {
	reaper.PoolReport
	closed bool
}

// networksAndPools returns the networks, and the pools that are in none of them. A block of Calico
// that is full is nothing bad: its network has others.
func networksAndPools(r reaper.Report) []place {
	var places []place
	for _, n := range r.Networks {
		places = append(places, place{reaper.PoolReport{Backend: n.Backend, Name: n.Name, Range: n.Range, Usage: n.Usage}, n.Closed != ""})
	}
	networks := networksOf(r.Networks)
	for _, p := range r.Pools {
		if _, ok := networks.of(p); !ok {
			places = append(places, place{PoolReport: p})
		}
	}
	return places
}
