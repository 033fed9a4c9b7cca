// Package metrics makes figures for Prometheus of the report of a run, and pushes
// them to a Pushgateway.
//
// All of them are gauges of the last run: a counter that begins anew with each run
// would count nothing. What a run does not know it leaves out, and never says 0.
package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// The labels of the figures.
const (
	labelBackend  = "backend"
	labelDecision = "verdict"
	labelStatus   = "status"
	labelPool     = "pool"
	labelRange    = "range"
	labelVersion  = "version"
)

// A sheet is where figures are written down.
type sheet struct{ factory promauto.Factory }

// newSheet returns an empty sheet, and whoever reads it.
func newSheet() (sheet, prometheus.Gatherer) {
	registry := prometheus.NewRegistry()
	return sheet{promauto.With(registry)}, registry
}

// A family are the figures of one name.
type family struct{ vec *prometheus.GaugeVec }

// family begins one, without any figure.
func (s sheet) family(name, help string, labels ...string) family {
	return family{s.factory.NewGaugeVec(prometheus.GaugeOpts{Namespace: "ip_reaper", Name: name, Help: help}, labels)}
}

// add adds to the figure with these values of the labels, and so sets one that was
// not there.
func (f family) add(figure float64, labels ...string) {
	valid := make([]string, len(labels)) // the client panics at anything else
	for i, l := range labels {
		valid[i] = strings.ToValidUTF8(l, "\uFFFD")
	}
	f.vec.WithLabelValues(valid...).Add(figure)
}

// figures are those of a run that ended with the exit code, but for its success.
func figures(r reaper.Report, exitCode int) prometheus.Gatherer {
	s, gatherer := newSheet()
	s.run(r.Run, exitCode)
	s.backends(r)
	s.pools(r)
	return gatherer
}

// success is when the run ended that had success.
func success(r reaper.Report) prometheus.Gatherer {
	s, gatherer := newSheet()
	s.family("last_success_timestamp_seconds",
		"When the last run ended that exited with 0, as Unix time.").
		add(seconds(r.Run.FinishedAt))
	return gatherer
}

// run writes down which run this was.
func (s sheet) run(run reaper.RunInfo, exitCode int) {
	s.family("run_timestamp_seconds",
		"When the last run ended, as Unix time, whatever came of it.").
		add(seconds(run.FinishedAt))
	s.family("run_duration_seconds",
		"How long the last run took, with what it waited for grace periods.").
		add(run.FinishedAt.Sub(run.StartedAt).Seconds())
	s.family("run_exit_code",
		"What the last run exited with: 0 done, 1 nobody could be asked who is alive, 3 partial, 4 a limit refused the plan, 130 interrupted.").
		add(float64(exitCode))
	s.family("dry_run",
		"1 where the last run was a dry run, which releases nothing, else 0.").
		add(one(run.DryRun))
	s.family("build_info",
		"Always 1; the label is the version of the last run.", labelVersion).
		add(1, run.Version)
}

// one is 1 if it is so, else 0.
func one(so bool) float64 {
	if so {
		return 1
	}
	return 0
}
