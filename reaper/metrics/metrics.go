// Package metrics pushes the report of a run to a Prometheus Pushgateway, or writes it to a
// file for node_exporter.
//
// The metrics are gauges of the last run, and counters of all runs, which the ledger keeps. A metric
// whose value is unknown is left out. It is never 0 instead.
package metrics

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// The labels of the metrics.
const (
	labelBackend = "backend"
	labelVerdict = "verdict"
	labelStatus  = "status"
	labelPool    = "pool"
	labelNetwork = "network"
	labelRange   = "range"
	labelVersion = "version"
	labelKind    = "kind"
	labelProved  = "proved"
	labelResult  = "result"
	labelNode    = "node" // of every metric in the file of a node; a push from there is grouped by it
)

// namespace begins the name of every metric, and lastSuccessName ends that of the time of the
// last success.
const (
	namespace       = "ip_reaper"
	lastSuccessName = "last_success_timestamp_seconds"
)

// gauges makes the gauges and counters of one push or file.
type gauges struct {
	factory promauto.Factory
	ofNode  bool // they have the node as a label, or their group has
}

// newGauges returns an empty set of gauges, and the gatherer that reads them. If a node is
// named, each gauge has it as a label.
func newGauges(node string) (gauges, prometheus.Gatherer) {
	registry := prometheus.NewRegistry()
	if node == "" {
		return gauges{factory: promauto.With(registry)}, registry
	}
	named := prometheus.WrapRegistererWith(prometheus.Labels{labelNode: printable.Line(node)}, registry)
	return gauges{promauto.With(named), true}, registry
}

// A family is the gauges of one name, which differ in their labels.
type family struct{ vec *prometheus.GaugeVec }

// family returns a new family without any gauge.
func (g gauges) family(name, help string, labels ...string) family {
	return family{g.factory.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)}
}

// add adds a value to the gauge with these labels, each as a printable line. A new gauge
// begins at 0.
func (f family) add(value float64, labels ...string) {
	lines := make([]string, len(labels)) // the client panics at invalid UTF-8
	for i, l := range labels {
		lines[i] = printable.Line(l)
	}
	f.vec.WithLabelValues(lines...).Add(value)
}

// all adds the metrics of a run that ended with the exit code, without the time of the last
// success.
func (g gauges) all(r report.Report, exitCode int) {
	g.ended(r.Run, exitCode)
	g.family("dry_run",
		"1 if the last run was a dry run, which releases nothing; else 0.").
		add(one(r.Run.DryRun))
	g.backends(r)
	g.pools(r)
	g.networks(r)
	g.leaked(r)
	g.nodes(r)
	g.findings(r)
	g.totals(r)
}

// success adds the time at which a run that exited with 0 ended.
func (g gauges) success(at float64) {
	g.family(lastSuccessName, "When the last run that exited with 0 ended, as Unix time.").add(at)
}

// ended adds the metrics that every run has, however early it ended.
func (g gauges) ended(run report.RunInfo, exitCode int) {
	g.family("run_timestamp_seconds",
		"When the last run ended, as Unix time, with any exit code.").
		add(seconds(run.FinishedAt))
	g.family("run_duration_seconds",
		"How long the last run took, including the time that it waited for grace periods.").
		add(run.FinishedAt.Sub(run.StartedAt).Seconds())
	g.family("run_exit_code",
		"Exit code of the last run: 0 done, 1 pods could not be listed, 2 wrong input or another store, 3 partial, 4 a limit refused the plan, 130 interrupted.").
		add(float64(exitCode))
	g.family("build_info",
		"Always 1. The label is the version of ip-reaper in the last run.", labelVersion).
		add(1, run.Version)
}

// leaked adds the bottom line.
func (g gauges) leaked(r report.Report) {
	leaked := g.family("leaked_addresses",
		"Addresses that have no owner, each once, by what becomes of them: due, waiting, held, or released by the last run. Left out if pods could not be listed, or no store.", labelStatus)
	if r.Leaked == nil {
		return
	}
	leaked.add(float64(r.Leaked.Due), "due")
	leaked.add(float64(r.Leaked.Waiting), "waiting")
	leaked.add(float64(r.Leaked.Held), "held")
	leaked.add(float64(r.Leaked.Released), "released")
}

// maxNodes is the largest number of nodes that have their own metric. Prometheus keeps a series for each.
const maxNodes = 20

// The nodes of leaks whose store names none, and of those of all further nodes. No node has such a name.
const (
	unknownNode = "(unknown)"
	otherNodes  = "(others)"
)

// nodes adds the leaks by node. On a node, all leaks are its own.
func (g gauges) nodes(r report.Report) {
	if r.Leaked == nil || g.ofNode {
		return
	}
	leaked := g.family("node_leaked",
		"Addresses that have no owner after the last run, each once, by the node of the pod that had them: the 20 nodes with the most, with (unknown) for those whose store names no node, and (others) for those of all further ones. Left out if pods could not be listed, and on a node.", labelNode)
	counts := r.LeakedBy(func(e report.Entry) string { return e.Owner.Node })
	left := func(node string) int { return counts[node].Total - counts[node].Released }
	nodes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(left(b), left(a)), cmp.Compare(a, b))
	})
	for i, node := range nodes {
		label := cmp.Or(node, unknownNode)
		if i >= maxNodes {
			label = otherNodes
		}
		if left(node) > 0 {
			leaked.add(float64(left(node)), label)
		}
	}
}

// counters adds a counter for each value of a label. What always has one begins at 0: Prometheus sees
// no increase from nothing. The client's other counters have a time at which they began, which would
// be that of each push: to Prometheus, they would begin anew with it.
func (g gauges) counters(name, help, label string, always []string, values map[string]uint64) {
	all := make(map[string]uint64)
	for _, each := range always {
		all[printable.Line(each)] = 0
	}
	for each, n := range values {
		all[printable.Line(each)] += n
	}
	for each, n := range all {
		g.factory.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: prometheus.Labels{label: each}},
			func() float64 { return float64(n) })
	}
}

// totals adds the counters. A backend that was skipped may have released something earlier.
func (g gauges) totals(r report.Report) {
	if r.Totals == nil {
		return
	}
	var backends []string
	for _, b := range r.Backends {
		backends = append(backends, b.Name)
	}
	g.counters("released_addresses_total",
		"Addresses that runs released since the ledger was made, each once, by the first backend that had it; also those that a restore put back. Left out if the ledger is not known to count the last run.",
		labelBackend, backends, r.Totals.Released)
	g.counters("runs_total",
		"Runs since the ledger was made, by result: done, partial, refused, interrupted or failed. Dry runs count if they remember. Left out if the ledger is not known to count the last run.",
		labelResult, ledger.Results(), r.Totals.Runs)
}

// findings adds what is wrong with addresses that pods show.
func (g gauges) findings(r report.Report) {
	found := g.family("findings",
		"What is wrong with addresses: duplicate if several live pods show one, unrecorded if one shows it and the store may give it to another pod, overlap for each two blocks of Calico that have the same addresses. proved is true if the status of each pod or the store itself shows it, and false if only an annotation does. Left out if pods could not be listed, and on a node.", labelKind, labelProved)
	if r.Leaked == nil || r.Run.Node != "" {
		return
	}
	for _, kind := range report.FindingKinds() {
		for _, proved := range []bool{true, false} {
			found.add(0, string(kind), strconv.FormatBool(proved))
		}
	}
	for _, f := range r.Findings {
		found.add(1, string(f.Kind), strconv.FormatBool(f.Proved()))
	}
}

// one returns 1 for true and 0 for false.
func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// statuses are all statuses of a backend.
var statuses = []ipam.Status{ipam.StatusOK, ipam.StatusPartial, ipam.StatusFailed, ipam.StatusSkipped}

// backends adds the metrics of each backend.
func (g gauges) backends(r report.Report) {
	status := g.family("backend_status",
		"1 for the status of the backend in the last run, 0 for the other statuses.", labelBackend, labelStatus)
	allocations := g.family("allocations",
		"Allocations that the last run listed, by verdict. Left out for a backend that was skipped or failed, and if pods could not be listed.",
		labelBackend, labelVerdict)
	planned := g.family("allocations_planned",
		"Orphans, which the last run planned to release. A dry run releases none of them, nor does a run whose plan a limit refused.", labelBackend)
	released := g.family("allocations_released",
		"Allocations that the last run released.", labelBackend)
	changed := g.family("allocations_changed",
		"Planned allocations that changed hands, or whose owner came back, before their release.", labelBackend)
	deleting := g.family("allocations_deleting",
		"Planned allocations whose deletion waits for finalizers.", labelBackend)
	failed := g.family("allocations_failed",
		"Planned allocations whose release failed, or is not known to have succeeded.", labelBackend)
	undecoded := g.family("undecoded_objects",
		"Objects beside the pools, such as network attachments, that the last run could not decode. It releases nothing that they may protect, and may not know how full networks are.", labelBackend)

	blind := r.Blind()
	for _, b := range r.Backends {
		for _, each := range statuses {
			status.add(one(b.Status == each), b.Name, each.String())
		}
		listed := b.Status == ipam.StatusOK || b.Status == ipam.StatusPartial
		if listed && !blind {
			allocations.add(float64(b.InUse), b.Name, judge.InUse.String())
			allocations.add(float64(b.Held), b.Name, judge.Held.String())
			allocations.add(float64(b.Suspected), b.Name, judge.Suspected.String())
			allocations.add(float64(b.Planned), b.Name, judge.Orphaned.String())
			planned.add(float64(b.Planned), b.Name)
		}
		if listed {
			undecoded.add(float64(len(b.Undecoded)), b.Name)
		}
		// A run that waits may release something before a later listing fails.
		if listed || b.Released > 0 {
			released.add(float64(b.Released), b.Name)
			changed.add(float64(b.Changed), b.Name)
			deleting.add(float64(b.Deleting), b.Name)
			failed.add(float64(b.Failed), b.Name)
		}
	}
}

// seconds returns a time as Unix time.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

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
func (g gauges) familiesOf(label string) func(name, help string, more ...string) family {
	many := " For a backend with more than 100 " + label + "s there is only the sum of each IP family, as " + label + " (all)."
	return func(name, help string, more ...string) family {
		return g.family(name, help+many, append([]string{labelBackend, label, labelRange}, more...)...)
	}
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
		allocated.add(float64(p.Used), rows[i][:]...)
		protected.add(one(p.ProtectedBy != ""), rows[i][:]...)
	}
	sums.addTo(capacity)
}

// ofParts is about a network in which pods see a part each.
const ofParts = " If attachments hand out different parts of the network, each part has its own, too, with what it hands out as the range."

// networks adds the metrics of the networks. A closed network gives no addresses, so it
// has neither a capacity nor free addresses.
func (g gauges) networks(r report.Report) {
	family := g.familiesOf(labelNetwork)
	capacity := family("network_capacity",
		"Addresses that pods can get of the network, taken or not. Left out if the number is unknown, and for a closed network."+ofParts)
	allocated := family("network_allocated",
		"Addresses of the network that are allocated after the last run.")
	leaked := family("network_leaked",
		"Addresses of the network that have no owner after the last run. Left out if pods could not be listed.")
	free := family("network_free",
		"Addresses that pods can still get of the network after the last run. Left out if the number is unknown, and for a closed network."+ofParts)

	blocked := family("network_blocked",
		"Addresses of the network that after the last run an overlapping-range reservation has, and no pool of the network, so that no pod can get them.")

	unrecorded := family("network_unrecorded",
		"Addresses of the network that pods show, and that after the last run no store has, so that other pods may get them. Left out if pods could not be listed, and on a node.")

	byName := family("network_live_by_name",
		"Addresses of the network that count as in use after the last run only because a pod exists that shows other addresses. Left out if pods could not be listed.")

	rows := rowsOf(r.Networks, func(n report.NetworkReport) row { return row{n.Backend, n.Name, n.Range} })
	capacities, frees, blind := make(sums), make(sums), r.Blind()
	for i, n := range r.Networks {
		allocated.add(float64(n.Used), rows[i][:]...)
		blocked.add(float64(n.Blocked), rows[i][:]...)
		if !blind {
			leaked.add(float64(n.Leaked), rows[i][:]...)
			byName.add(float64(n.ByName), rows[i][:]...)
		}
		if !blind && r.Run.Node == "" {
			unrecorded.add(float64(n.Unrecorded), rows[i][:]...)
		}
		if n.Closed == "" {
			capacities.add(rows[i], n.Capacity)
			frees.add(rows[i], n.Free)
			if rows[i][1] == allPools {
				continue
			}
			for _, p := range n.Parts {
				part := row{n.Backend, n.Name, printable.Some(p.Ranges)}
				capacities.add(part, p.Capacity)
				frees.add(part, p.Free)
			}
		}
	}
	capacities.addTo(capacity)
	frees.addTo(free)
	g.blocks(r, rows)
}

// blocks adds the metrics of the networks that nodes share in blocks. The rows are those of the
// networks.
func (g gauges) blocks(r report.Report, rows []row) {
	family := g.familiesOf(labelNetwork)
	blocks := family("network_blocks",
		"Blocks of a network that gives its addresses out in blocks, after the last run: room if an address is free, full if none is, missing if its node does not exist, unclaimed if no node has it. unclaimed is left out if unknown.",
		labelStatus)
	without := family("network_nodes_without_room",
		"Nodes that can get no address of a network that gives its addresses out in blocks, nor of another of its IP family, after the last run: their blocks are full, and they may neither take another nor borrow. Left out if unknown, and for a closed network.")
	unclaimed := make(sums)
	for i, n := range r.Networks {
		b := n.Blocks
		if b == nil {
			continue
		}
		for state, count := range map[string]int{"room": b.Room, "full": b.Full, "missing": b.Missing} {
			blocks.add(float64(count), append(rows[i][:], state)...)
		}
		unclaimed.add(rows[i], b.Unclaimed)
		if b.NodesWithoutRoom != nil {
			without.add(float64(*b.NodesWithoutRoom), rows[i][:]...)
		}
	}
	unclaimed.addTo(blocks, "unclaimed")
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

// addTo adds the sums that are known to gauges, which may have more labels.
func (s sums) addTo(f family, more ...string) {
	for row, sum := range s {
		if sum != nil {
			value, _ := sum.Float64()
			f.add(value, append(row[:], more...)...)
		}
	}
}
