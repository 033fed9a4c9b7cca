package reaper

import "context"

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
