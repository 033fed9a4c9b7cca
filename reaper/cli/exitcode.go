package cli

import (
	"context"
	"errors"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// The exit codes are a contract that users script against.
const (
	exitDone        = 0
	exitUnexpected  = 1
	exitUsage       = 2
	exitPartial     = 3
	exitLimit       = 4
	exitLocked      = 5
	exitInterrupted = 130
)

const exitCodes = `  0    done, even if there was nothing to do
  1    unexpected: the API server did not answer or the pods could not be
       listed, and nothing was released; or the report could not be printed
  2    a wrong flag or policy, a name that does not exist, a file that cannot
       be read, or a journal that does not exist or is of another cluster;
       nothing was written. Or another store than in earlier runs; nothing
       was written to it
  3    partial: a backend, a pool or a release failed; the rest is done
  4    a limit refused the plan, or the pod list looks implausible; nothing of
       the plan was released
  5    another run is in progress; nothing was done
  130  interrupted; allocations whose release had not begun are kept
`

// exitCode maps every error to its code.
func exitCode(ctx context.Context, err error) int {
	var (
		limit   *judge.LimitError
		locked  *reaper.LockedError
		partial *report.PartialError
	)
	switch {
	case err == nil:
		return exitDone
	case isUsage(err):
		return exitUsage
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.As(err, &limit):
		return exitLimit
	case errors.As(err, &locked):
		return exitLocked
	case errors.As(err, &partial):
		return exitPartial
	default:
		return exitUnexpected
	}
}

// isUsage reports whether an error is a mistake in what the user gave.
func isUsage(err error) bool {
	var usage *ipam.InputError
	var invalid *policy.Error
	return errors.As(err, &usage) || errors.As(err, &invalid)
}
