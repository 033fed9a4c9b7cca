package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/metrics"
)

// gateway returns where figures are pushed to; the zero Gateway where nobody asked
// for that.
func (f runFlags) gateway() (metrics.Gateway, error) {
	if f.pushURL == "" {
		return metrics.Gateway{}, nil
	}
	gateway, err := metrics.ParseGateway(f.pushURL)
	if err != nil {
		return gateway, reaper.BadInput(fmt.Errorf("--push-url: %w", err),
			"such as http://pushgateway:9091 or http://pushgateway:9091/metrics/job/ip-reaper/cluster/prod")
	}
	return gateway, nil
}

// pushFigures pushes those of a run that ended with the error, or without one. That it
// fails changes nothing about the run. One that was locked out has none: those of
// the run that is going on are the gateway's next.
func pushFigures(ctx context.Context, gateway metrics.Gateway, r reaper.Report, runErr error, logger *slog.Logger) {
	var locked *reaper.LockedError
	if gateway.Nowhere() || errors.As(runErr, &locked) {
		return
	}
	if err := gateway.Push(ctx, r, exitCode(ctx, runErr)); err != nil {
		logger.Warn("no figures were pushed", "err", err)
	}
}
