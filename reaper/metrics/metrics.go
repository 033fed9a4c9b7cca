// Package metrics pushes the report of a run to a Prometheus Pushgateway, or writes it to a
// file for node_exporter.
//
// All metrics are gauges of the last run, because a counter would start again from 0
// with each run. A metric whose value is unknown is left out. It is never 0 instead.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

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
	labelNode    = "node" // of a file; a push is grouped by it
)

// namespace begins the name of every metric, and lastSuccessName ends that of the time of the
// last success.
const (
	namespace       = "ip_reaper"
	lastSuccessName = "last_success_timestamp_seconds"
)

// gauges makes the gauges of one push or file.
type gauges struct{ factory promauto.Factory }

// newGauges returns an empty set of gauges, and the gatherer that reads them. If a node is
// named, each gauge has it as a label.
func newGauges(node string) (gauges, prometheus.Gatherer) {
	registry := prometheus.NewRegistry()
	if node == "" {
		return gauges{promauto.With(registry)}, registry
	}
	named := prometheus.WrapRegistererWith(prometheus.Labels{labelNode: printable.Line(node)}, registry)
	return gauges{promauto.With(named)}, registry
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
		"Exit code of the last run: 0 done, 1 pods could not be listed, 3 partial, 4 a limit refused the plan, 130 interrupted.").
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

// one returns 1 for true and 0 for false.
func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
