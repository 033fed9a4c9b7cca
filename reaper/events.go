package reaper

import (
	"context"
	"errors"
	"time"
)

// A Release is an allocation that a run released, and the object of its pool.
type Release struct {
	Object Object // zero if the pool has no object
	Entry  Entry
}

// An EventRecorder writes the events of a run to the cluster.
type EventRecorder interface {
	// Announce writes the events for the run and for its releases. It returns when
	// all of them are written, or with an error.
	Announce(ctx context.Context, r Report, released []Release) error
}

// announce writes the events of the run, also if the run was interrupted. If it fails,
// the run warns.
func (r *run) announce(ctx context.Context, err error) {
	var held *LockedError
	if r.Events == nil || *r.Policy.DryRun || errors.As(err, &held) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), announceTimeout)
	defer cancel()
	if err := r.Events.Announce(ctx, r.report, r.released); err != nil {
		r.warn("not every event was written: " + err.Error())
	}
}

// announceTimeout limits how long a run may take for its events.
const announceTimeout = 15 * time.Second
