package backendtest

import (
	"context"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// A Journal is a journal.Store in memory. The zero Journal is empty. It is safe
// for concurrent use.
type Journal struct {
	mu      sync.Mutex
	journal journal.Journal
	hook    func() error
}

// OnWrite sets a hook that runs at the beginning of each write. If it returns an
// error, the write fails with it.
func (j *Journal) OnWrite(hook func() error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.hook = hook
}

// Write implements journal.Store.
func (j *Journal) Write(_ context.Context, run journal.Run, records []ipam.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.hook != nil {
		if err := j.hook(); err != nil {
			return err
		}
	}
	if j.journal.Run != run {
		j.journal = journal.Journal{Run: run}
	}
	j.journal.Records = append(j.journal.Records, records...)
	return nil
}

// Prune implements journal.Store.
func (*Journal) Prune(context.Context) error { return nil }

// Read returns the journal of the last run that wrote one. If none did, it is the zero Journal.
func (j *Journal) Read() journal.Journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.journal
}
