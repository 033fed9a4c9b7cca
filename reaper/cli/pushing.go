package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/metrics"
)

// gateway returns the Pushgateway of --push-url, or the zero Gateway without the flag. It
// refuses a selection, whose figures would stand for those of the cluster.
func (f runFlags) gateway(selection reaper.Selection) (metrics.Gateway, error) {
	if f.pushURL == "" {
		return metrics.Gateway{}, nil
	}
	if !selection.Everything() {
		return metrics.Gateway{}, reaper.BadInput(
			fmt.Errorf("--push-url: the figures of %s are not those of the cluster", selection), "leave out --push-url or the filters")
	}
	gateway, err := metrics.ParseGateway(f.pushURL)
	if err != nil {
		return gateway, reaper.BadInput(fmt.Errorf("--push-url: %w", err),
			"such as http://pushgateway:9091 or http://pushgateway:9091/metrics/job/ip-reaper/cluster/prod")
	}
	return gateway, nil
}

// pushMetrics pushes the metrics of a run, which ended with runErr. If the push fails,
// it logs a warning, and the run stays as it was. A run that found the lock taken
// pushes nothing: the run that has the lock pushes next.
func pushMetrics(ctx context.Context, gateway metrics.Gateway, r reaper.Report, runErr error, logger *slog.Logger) {
	var locked *reaper.LockedError
	if gateway.Nowhere() || errors.As(runErr, &locked) {
		return
	}
	if err := gateway.Push(ctx, r, exitCode(ctx, runErr)); err != nil {
		logger.Warn("metrics were not pushed", "err", err)
	}
}
