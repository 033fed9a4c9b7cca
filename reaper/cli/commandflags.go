package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

// commandFlags are the flags of every command that contacts a cluster or a node.
type commandFlags struct {
	flags  *pflag.FlagSet
	target target

	policyFile  string // empty if none is given
	output      string
	logFormat   string
	verbose     bool
	timeout     time.Duration
	concurrency int // the most requests at the same time

	stateOnly bool // it reads nothing but what earlier runs stored
}

// defaultConcurrency is less than what an API server handles at the same time for all of
// its clients of the same priority.
const defaultConcurrency = 32

const defaultTimeout = 10 * time.Minute

// add adds the flags to a command.
func (f *commandFlags) add(flags *pflag.FlagSet) {
	f.flags, f.concurrency = flags, defaultConcurrency
	f.target.add(flags)
	usage := "take the policy from this `FILE`; outside a cluster, it is for dry runs, and the default is the installed one; elsewhere, the built-in defaults are"
	if f.target.scope() == plugin.Node {
		usage = "policy `FILE`; without one, a dry run with the defaults"
	}
	flags.StringVar(&f.policyFile, "policy", "", usage)
	flags.StringVarP(&f.output, "output", "o", "table", "print the report in this `FORMAT`: "+listOf(print.Usages()))
	flags.DurationVar(&f.timeout, "timeout", defaultTimeout, "give up after this `DURATION`")
	flags.StringVar(&f.logFormat, "log-format", "", "log to stderr in this `FORMAT`, text or json; by default, text on a terminal and json elsewhere")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log every decision and every release")
}

// check returns the mistakes in the flags that can be found without the target.
func (f commandFlags) check() error {
	if f.policyFile == "" && f.flags.Changed("policy") { // such as --policy "$UNSET"
		return ipam.BadInput(errors.New("--policy is empty"), "name a file, or leave the flag out")
	}
	if f.timeout <= 0 {
		return ipam.BadInput(fmt.Errorf("--timeout: %v is not a positive duration", f.timeout), "give one such as 10m")
	}
	if f.logFormat != "" && !slices.Contains(logFormats, f.logFormat) {
		return ipam.BadInput(fmt.Errorf("--log-format: unknown format %q", f.logFormat), "use "+strings.Join(logFormats, " or "))
	}
	return f.target.check()
}

// connect connects to the target. writes says that the command writes anything. p is the policy of
// the file, or the default; the connection has the one to use.
func (f commandFlags) connect(ctx context.Context, w ioStreams, writes bool, p policy.Policy, logger *slog.Logger) (connection, error) {
	c, err := f.target.connect(ctx, w, connectOptions{f, writes, p, logger})
	c.ID, c.Version, c.Program = newID(), buildVersion(), w.name()
	c.PolicyFile = f.policyFile
	c.Protectors, c.Elsewhere = plugin.Protectors(w.backends), elsewhere(w, f.target.scope(), c.Policy)
	c.Now, c.Logger, c.Timeout = time.Now, logger, f.timeout
	return c, err
}

// elsewhere says which run opens each backend that the policy turns on and that a run of this
// scope does not open. So a report does not silently omit it.
func elsewhere(w ioStreams, scope plugin.Scope, p policy.Policy) map[string]string {
	says := map[plugin.Scope]string{
		plugin.Node:    fmt.Sprintf("its store is on the nodes: run %s node there", w.name()),
		plugin.Cluster: fmt.Sprintf("its store is in the cluster: run %s run", w.name()),
	}
	found := make(map[string]string)
	for _, one := range w.backends {
		if one.Scope != scope && p.Backends[one.Name].Enabled == policy.On {
			found[one.Name] = says[one.Scope]
		}
	}
	return found
}

// newID returns an ID for a run, which begins with its time.
func newID() string { return time.Now().UTC().Format("20060102-150405-") + rand.Text()[:6] }

// outputFlags are the flags of the commands that print the report of a run or a restore,
// besides --output.
type outputFlags struct {
	color   string
	noTrunc bool
	quiet   bool
}

// add adds the flags to a command.
func (f *outputFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.color, "color", "auto", "colour tables: `WHEN` is auto (on a terminal, unless NO_COLOR is set), always or never")
	flags.BoolVar(&f.noTrunc, "no-trunc", false, "do not shorten names and sandbox IDs on a terminal; elsewhere they are whole anyway")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print only how much is leaked, why the plan was refused, what failed, and how to undo a release")
}

// options returns how to print a report. Names are shortened only on a terminal, so that grep
// finds them elsewhere.
func (f outputFlags) options(w ioStreams, output string, all bool) (print.Options, error) {
	o := print.Options{Format: output, All: all, NoTrunc: f.noTrunc || !w.stdoutTerminal, Quiet: f.quiet}
	switch f.color {
	case "always":
		o.Color = true
	case "never":
	case "auto":
		o.Color = w.stdoutTerminal && w.env("NO_COLOR") == "" && w.env("TERM") != "dumb"
	default:
		return o, ipam.BadInput(fmt.Errorf("--color: unknown value %q", f.color), "use auto, always or never")
	}
	if f.quiet && all {
		return o, ipam.BadInput(errors.New("--quiet and --all contradict each other: --quiet prints no allocation"), "give one of them")
	}
	if f.quiet && output != "table" {
		return o, ipam.BadInput(errors.New("--quiet prints no report, so it has no --output"), "give one of them")
	}
	if err := print.Check(output); err != nil {
		return o, ipam.BadInput(fmt.Errorf("--output: %w", err), "use "+listOf(print.Usages()))
	}
	return o, nil
}
