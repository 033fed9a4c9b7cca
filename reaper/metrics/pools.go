package metrics

import (
	"math/big"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// maxPools is the largest number of pools or networks of one backend that have their own metrics.
// Calico has one or more blocks for each node, and Prometheus keeps a series for each pool.
const maxPools = 100

// The labels of the sum of a backend's pools of one IP family. No pool has them.
const (
	allPools = "(all)"
	allIPv4  = "0.0.0.0/0"
	allIPv6  = "::/0"
)

// A row is the labels of a pool or of a network: its backend, its name and its range.
type row [3]string

// rowsOf returns the rows of pools or networks. If a backend has many, they have the rows of sums.
func rowsOf[T any](all []T, own func(T) row) []row {
	rows, count := make([]row, len(all)), make(map[string]int)
	for i, one := range all {
		rows[i] = own(one)
		count[rows[i][0]]++
	}
	for i, r := range rows {
		switch {
		case count[r[0]] <= maxPools:
		case strings.Contains(r[2], ":"):
			rows[i] = row{r[0], allPools, allIPv6}
		default:
			rows[i] = row{r[0], allPools, allIPv4}
		}
	}
	return rows
}

// familiesOf returns a function that makes the families of pools or of networks.
func (g gauges) familiesOf(label string) func(name, help string) family {
	many := " For a backend with more than 100 " + label + "s there is only the sum of each IP family, as " + label + " (all)."
	return func(name, help string) family { return g.family(name, help+many, labelBackend, label, labelRange) }
}

// pools adds the metrics of the pools.
func (g gauges) pools(r report.Report) {
	family := g.familiesOf(labelPool)
	capacity := family("pool_capacity",
		"Addresses that pods can get of the pool, taken or not: without those that are reserved, excluded, or outside of what is handed out. Left out if the number is unknown.")
	allocated := family("pool_allocated",
		"Addresses of the pool that are allocated after the last run.")
	protected := family("pool_protected",
		"1 for a pool with addresses that no pod has, of which none is released since every address of the pool is protected; 0 for other pools.")

	rows := rowsOf(r.Pools, func(p report.PoolReport) row { return row{p.Backend, p.Name, p.Range} })
	sums := make(sums)
	for i, p := range r.Pools {
		sums.add(rows[i], p.Capacity)
		after := p.AllocatedAfter
		if r.Run.DryRun { // then the planned releases are subtracted
			after = p.AllocatedBefore
		}
		allocated.add(float64(after), rows[i][:]...)
		protected.add(one(p.ProtectedBy != ""), rows[i][:]...)
	}
	sums.addTo(capacity)
}

// networks adds the metrics of the networks. A closed network gives no addresses, so it
// has neither a capacity nor free addresses.
func (g gauges) networks(r report.Report) {
	family := g.familiesOf(labelNetwork)
	capacity := family("network_capacity",
		"Addresses that pods can get of the network, taken or not. Left out if the number is unknown, and for a closed network.")
	allocated := family("network_allocated",
		"Addresses of the network that are allocated after the last run.")
	leaked := family("network_leaked",
		"Addresses of the network that have no owner after the last run, and that nothing protects. Left out if pods could not be listed.")
	free := family("network_free",
		"Addresses that pods can still get of the network after the last run. Left out if the number is unknown, and for a closed network.")

	rows := rowsOf(r.Networks, func(n report.NetworkReport) row { return row{n.Backend, n.Name, n.Range} })
	capacities, frees, blind := make(sums), make(sums), r.Blind()
	for i, n := range r.Networks {
		allocated.add(float64(n.Used), rows[i][:]...)
		if !blind {
			leaked.add(float64(n.Leaked), rows[i][:]...)
		}
		if n.Closed == "" {
			capacities.add(rows[i], n.Capacity)
			frees.add(rows[i], n.Free)
		}
	}
	capacities.addTo(capacity)
	frees.addTo(free)
}

// sums are the sums of each row; nil if a part is unknown.
type sums map[row]*big.Float

// add adds a number, which is nil if it is unknown.
func (s sums) add(to row, n *big.Int) {
	sum, ok := s[to]
	switch {
	case n == nil:
		s[to] = nil
	case !ok:
		s[to] = new(big.Float).SetInt(n)
	case sum != nil:
		sum.Add(sum, new(big.Float).SetInt(n))
	}
}

// addTo adds the sums that are known to gauges.
func (s sums) addTo(f family) {
	for row, sum := range s {
		if sum != nil {
			value, _ := sum.Float64()
			f.add(value, row[:]...)
		}
	}
}
