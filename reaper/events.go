package reaper

import (
	"context"
	"errors"
	"time"
)

// A Release is one entry that a run released, and the object that it was in.
type Release struct {
	Object Object // zero where there is none
	Entry  Entry
}

// A EventRecorder tells the cluster what a run did, as events.
type EventRecorder interface {
	// Announce tells of the run and of its releases. When it returns, everything
	// is told. An error does not change what the run did.
	Announce(ctx context.Context, r Report, released []Release) error
}

// announce tells the cluster, also when the run was interrupted.
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

// announceTimeout bounds how long a run goes on for its events alone.
const announceTimeout = 15 * time.Second
