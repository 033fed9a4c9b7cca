package cli

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
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

	// workstation reports whether a run is from outside a cluster, where a policy alone does not
	// make it release.
	workstation(w ioStreams) bool

	// name returns the name of the node; empty for a cluster, and if it is not known.
	name(w ioStreams) string

	// connect connects to the target, waits for its first answer, chooses the policy, and looks
	// at where the state is. If it fails, nothing stays open.
	connect(ctx context.Context, w ioStreams, o connectOptions) (connection, error)
}

// connectOptions say what a command needs from its target.
type connectOptions struct {
	commandFlags
	writes bool          // it writes anything
	policy policy.Policy // of the file, or the default
	logger *slog.Logger
}

// A connection is everything that a run talks to.
type connection struct {
	reaper.Options // those that a target knows, and those that all of its commands have in common

	installed func(context.Context) (policy.Policy, error) // to compare a file with; nil without one, or if the file is the installed one

	policy   dump.Policy // the installed one, if it was read
	journals storedJournals
	client   rest.Interface         // see kube.RawClient; nil on a node
	core     corev1.CoreV1Interface // of the same; nil on a node
	warnings []string               // those of the caveats that are about where the state is
	close    func()                 // closes what the connection has opened
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

// unread returns the error of reading a journal. If there is no journal, or a right is missing, the
// hint says which other namespaces may have it.
func (c connection) unread(err error) error {
	if !errors.Is(err, journal.ErrNone) {
		return elsewhereFirst(err, c.warnings)
	}
	return ipam.BadInput(err, strings.Join(append(c.warnings, c.runInfo().Command("history")+" lists the runs that have one"), "; "))
}

// runInfo returns how the program was called, for the commands that a report prints.
func (c connection) runInfo() report.RunInfo {
	by := report.RunInfo{Origin: c.Origin, Caveats: c.Caveats}
	by.Policy.File, by.Policy.Installed = c.PolicyFile, c.PolicyInstalled
	return by
}

// retention returns which journals the policy keeps.
func retention(p policy.Policy) journal.Retention {
	return journal.Retention{Runs: *p.Journal.Keep, For: p.Journal.KeepFor.Duration}
}
