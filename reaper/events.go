package reaper

import (
	"context"
	"errors"
	"time"
)

// announce writes the events of the run, even if the run was interrupted. If it fails,
// the run warns.
func (r *run) announce(ctx context.Context, err error) {
	var held *LockedError
	if r.Events == nil || *r.Policy.DryRun || errors.As(err, &held) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), announceTimeout)
	defer cancel()
	if err := r.Events.Announce(ctx, r.report, r.released); err != nil {
		r.warn("some events were not written: " + err.Error())
	}
}

// announceTimeout limits how long a run may take for its events.
const announceTimeout = 15 * time.Second
