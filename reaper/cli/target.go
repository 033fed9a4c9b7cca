package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A target is where a command works: a cluster, or the node on which the program runs. Its
// flags say which one.
type target interface {
	// scope says which backends the command opens.
	scope() plugin.Scope

	// add adds the flags to a command.
	add(flags *pflag.FlagSet)

	// check returns the mistakes in the flags that can be found without the target.
	check() error

	// name returns the name of the node; empty for a cluster, and if it is not known.
	name(w ioStreams) string

	// connect prepares everything that a run talks to. It makes no request to an API
	// server. writes says that the command writes anything.
	connect(ctx context.Context, w ioStreams, f commandFlags, writes bool, p policy.Policy, logger *slog.Logger) (connection, error)

	// command returns the words, after the name of the program, of a run on the target of
	// an earlier run.
	command(run report.RunInfo) []string
}

// A connection is everything that a run talks to. The functions are never nil.
type connection struct {
	address        string // of the API server; empty if none is asked
	context        string // of the kubeconfig; empty inside a cluster
	stateNamespace string // of ledger, journals and lock; empty on a node
	node           string // its name; empty in a cluster
	stateDir       string // of ledger, journals and lock; empty in a cluster
	by             string // who is connected: the pod, or the user

	backends  []ipam.Backend
	cluster   census.Cluster
	ledgers   ledger.Store
	journals  storedJournals
	lock      reaper.Lock
	events    reaper.EventRecorder // nil: no events are written
	access    func(ctx context.Context, backends []string) reaper.Denied
	clockSkew func() (time.Duration, bool)

	// firstAnswer returns an error if the API server never answers. A command calls it before
	// anything else that it asks the API server.
	firstAnswer func(ctx context.Context) error

	// checkState returns an error if a command that writes has no place for its state, and
	// warnings for the report. What it may not read, it does not tell.
	checkState func(ctx context.Context, writes bool) (warnings []string, err error)
	warnings   []string // of checkState

	// close gives back what the connection holds.
	close func()
}

// storedJournals are the journals of earlier runs, and that of this one.
type storedJournals interface {
	journal.Store

	// Read returns the journal of a run. The error wraps journal.ErrNone or
	// journal.ErrDamaged; with the latter, the journal has what could be read.
	Read(ctx context.Context, runID string) (journal.Journal, error)

	// List returns the runs that have a journal, the latest first. The warnings say what
	// could not be read.
	List(ctx context.Context) (runs []journal.PastRun, warnings []string, err error)
}
