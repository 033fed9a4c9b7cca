package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/metrics"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A metricsTarget is where the metrics of a run go. The zero metricsTarget is nowhere.
type metricsTarget struct {
	gateway metrics.Gateway
	file    string
}

// metricsTo returns what --push-url and --metrics-file name. It refuses a selection, whose
// figures would pass for those of all.
func metricsTo(url, file string, selection judge.Selection) (metricsTarget, error) {
	to := metricsTarget{file: file}
	if url+file != "" && !selection.Everything() {
		return to, ipam.BadInput(fmt.Errorf("--push-url and --metrics-file: the figures of %s are not those of all", selection), "leave them or the filters out")
	}
	if file != "" {
		if err := metrics.CheckFile(file); err != nil {
			return to, ipam.BadInput(fmt.Errorf("--metrics-file: %w", err), "give a file in a directory that exists")
		}
	}
	if url == "" {
		return to, nil
	}
	var err error
	if to.gateway, err = metrics.ParseGateway(url); err != nil {
		return to, ipam.BadInput(fmt.Errorf("--push-url: %w", err),
			"such as http://pushgateway:9091 or http://pushgateway:9091/metrics/job/ip-reaper/cluster/prod")
	}
	return to, nil
}

// write pushes and writes the metrics of a run that ended with runErr. If that fails, it logs
// a warning, and the result of the run stays the same. A run that found the lock taken writes
// no metrics: the run that has the lock does.
func (t metricsTarget) write(ctx context.Context, r report.Report, runErr error, logger *slog.Logger) {
	var locked *reaper.LockedError
	if errors.As(runErr, &locked) {
		return
	}
	code := exitCode(ctx, runErr)
	if !t.gateway.Nowhere() {
		if err := t.gateway.Push(ctx, r, code); err != nil {
			logger.Warn("pushing the metrics failed", "err", err)
		}
	}
	if t.file != "" {
		if err := metrics.WriteFile(t.file, r, code); err != nil {
			logger.Warn("writing the metrics failed", "err", err)
		}
	}
}

// writeEarly writes the metrics of a run on the node that failed before it listed anything. It
// pushes none: a gateway shows for how long nothing was pushed.
func (t metricsTarget) writeEarly(ctx context.Context, node string, started time.Time, runErr error, logger *slog.Logger) {
	if t.file == "" {
		return
	}
	run := report.RunInfo{Origin: report.Origin{Node: node, Version: buildVersion()}, StartedAt: started, FinishedAt: time.Now()}
	if err := metrics.WriteEarly(t.file, run, exitCode(ctx, runErr)); err != nil {
		logger.Warn("writing the metrics failed", "err", err)
	}
}
