package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Options are the parts and the settings of a run. A field is required unless its
// comment says what its zero value means.
type Options struct {
	ID            string
	report.Origin        // its Cluster is an address; on a node, empty if no API server is asked
	Overrides     string // for the ledger: the flags that replaced settings of the policy
	PolicyFile    string // for the report; empty if the policy is from none

	// PolicyInstalled is the ConfigMap that the policy is from, as namespace/name; empty if it
	// is from a file, or the default. Caveats are what the report says before its figures.
	PolicyInstalled string
	Caveats         []string

	// Shown is set if the report is printed for people on the terminal that also has the log. What both
	// would say is then only in the report, and in a verbose log.
	Shown bool

	// Installed returns the installed policy, with which a dry run by a file compares its verdicts. Nil:
	// it does not.
	Installed func(ctx context.Context) (policy.Policy, error)

	// Selection narrows what the run reports and releases. The zero Selection does not.
	Selection judge.Selection

	Policy   policy.Policy
	Backends []ipam.Backend // in the order in which they release
	Cluster  census.Cluster

	Protectors []ipam.Protector

	// Files is set in a dry run on dumped files: it has no Ledgers, Journals and Lock. If the files have no
	// pods, it has no Cluster either. Nil: the run is on a cluster, or on a node.
	Files *Files

	// Elsewhere has the backends that another run opens, by name, and says which run. The
	// report shows them as skipped.
	Elsewhere map[string]string

	Ledgers  ledger.Store
	Journals journal.Store
	Lock     Lock // nil: another run may be in progress

	// Access returns for which of these backends the run may not release. It is called before
	// the first write of a round that has something due. Nil: it may release all.
	Access func(ctx context.Context, backends []string) Denied

	// ClusterUID returns the UID of the namespace kube-system, for the journal; empty if it cannot
	// be read. Nil: it cannot.
	ClusterUID func(ctx context.Context) string

	// SamePolicy returns an error if the installed policy is not the one by which the run judges any
	// more; it wraps ErrAgain if a later call may tell. It is called with each second look, at the same
	// time for several. Nil: the policy is from a file, or the default.
	SamePolicy func(ctx context.Context) error

	// HasNamespace reports whether the cluster has a namespace in which nothing was found. Nil:
	// it may have any.
	HasNamespace func(ctx context.Context, name string) census.Presence

	// ClockSkew returns how far the clock is ahead of the API server's, and false if
	// that is not known. Nil: the clock is believed.
	ClockSkew func() (time.Duration, bool)

	Now      func() time.Time
	Logger   *slog.Logger
	Progress func(line string) // called at each step; may be nil
	Timeout  time.Duration     // of one round, with its releases; 0 is none

	// IgnoreLimits are the limits, of judge.LimitNames, that refuse no plan.
	IgnoreLimits []string

	// AcceptNewStore takes the stores outside the API server as they are: otherwise, the run ends
	// if one of them is another one than in the ledger.
	AcceptNewStore bool

	// Brief leaves out of the report's entries the allocations in use about which there is
	// nothing to say. The report still counts them.
	Brief bool

	// Remember makes a dry run save the ledger, and nothing else.
	Remember bool

	// Ending says, for the ledger, how the program ends if the run ends with an error, or
	// with none. Nil: with the exit code 1, or 0.
	Ending func(err error) (exitCode int, text string)

	// Sleep waits for the next grace period to end. It returns an error if ctx ends
	// first. Nil: the run does not wait.
	Sleep func(ctx context.Context, d time.Duration) error

	// MaxWait is the longest that the run sleeps in total. An allocation whose grace
	// period would take longer stays suspected. 0: until the last grace period that the
	// first round found.
	MaxWait time.Duration
}

// info returns what identifies the run.
func (o Options) info(dryRun bool) report.RunInfo {
	return report.RunInfo{
		ID:        o.ID,
		StartedAt: o.Now().UTC(),
		DryRun:    dryRun,
		Remember:  dryRun && o.Remember,
		Origin:    o.Origin,
		Selection: o.Selection,
		Policy: report.PolicyInfo{
			File:        o.PolicyFile,
			Installed:   o.PolicyInstalled,
			GracePeriod: *o.Policy.GracePeriod,
			MinAge:      *o.Policy.MinAge,
		},
	}
}

// A Lock keeps two runs of one installation from running at the same time, and a restore from what
// a run is about to release. It is safe for concurrent use.
type Lock interface {
	// Acquire takes the lock for a holder with a unique name, and keeps it until
	// release is called. It returns a *LockedError if another holder has the lock, and an
	// *InputError if nothing can be written where the lock is.
	Acquire(ctx context.Context, holder string) (release func(), err error)

	// Lapsed returns why another holder may have taken the lock since the last Acquire: then nothing
	// may be released. The error wraps ErrAgain if the lock may turn out to be kept. It is nil as long
	// as none can have taken it, and if no Acquire has succeeded. Lapsed asks no server: it is called
	// right before each write.
	Lapsed() error
}

// A LockedError says that another run is in progress.
type LockedError struct {
	Holder string
	Since  time.Time // when it took the lock
	Lock   string    // the object, for people
}

// Error names the holder of the lock, and when it took it.
func (e *LockedError) Error() string {
	return fmt.Sprintf("another run is in progress: %s, since %s (%s); nothing was done",
		e.Holder, e.Since.UTC().Format(time.RFC3339), e.Lock)
}

// acquire takes the lock for a holder, if there is one. If another run has it, it returns a
// *LockedError, and if the state namespace does not exist, an *InputError. After any other
// failure, it warns and the run continues: every write is conditional, and each second look asks
// whether others have changed the ledger.
func acquire(ctx context.Context, l Lock, holder string, warn func(sentences ...string)) (unlock func(), err error) {
	none := func() {}
	if l == nil {
		return none, nil
	}
	unlock, err = l.Acquire(ctx, holder)
	var held *LockedError
	var nowhere *ipam.InputError
	switch {
	case errors.As(err, &held), errors.As(err, &nowhere):
		return none, err
	case err != nil:
		warn("the lock could not be taken, so another run may go on beside this one: " + printable.Error(err))
		return none, nil
	}
	return unlock, nil
}

// Denied says for which backends the run may not release, such as because its account lacks a
// right. The zero Denied denies nothing.
type Denied struct {
	All      error            // why nothing may be released
	Backends map[string]error // by name
}

// of returns why nothing of a backend can be released; nil if it can.
func (d Denied) of(backend string) error { return cmp.Or(d.All, d.Backends[backend]) }
