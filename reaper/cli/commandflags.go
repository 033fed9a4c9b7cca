package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

// commandFlags are the flags of every command that contacts a cluster or a node.
type commandFlags struct {
	flags  *pflag.FlagSet
	target target

	policy    string
	output    string
	logFormat string
	verbose   bool
	timeout   time.Duration

	// stateOnly is set for commands that read nothing but what earlier runs stored.
	stateOnly bool

	// concurrency is the most requests at the same time. 0 is defaultConcurrency, for the
	// commands that have no flag for it.
	concurrency int
}

// defaultConcurrency is less than what an API server handles at the same time for all of
// its clients of the same priority.
const defaultConcurrency = 32

// add adds the flags to a command.
func (f *commandFlags) add(flags *pflag.FlagSet) {
	f.flags = flags
	f.target.add(flags)
	flags.StringVar(&f.policy, "policy", "", "policy `FILE`; without one, a dry run with the defaults")
	flags.StringVarP(&f.output, "output", "o", "table", "report format: "+print.FormatList())
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "give up after this time")
	flags.StringVar(&f.logFormat, "log-format", "", "`FORMAT` of the log on stderr, text or json; by default text on a terminal, json elsewhere")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log every decision and every release")
}

// check returns the mistakes in the flags that can be found without the target.
func (f commandFlags) check() error {
	if f.policy == "" && f.flags.Changed("policy") { // such as --policy "$UNSET"
		return ipam.BadInput(errors.New("--policy: no file is named"), "name one, or leave the flag out")
	}
	if f.timeout <= 0 {
		return ipam.BadInput(fmt.Errorf("--timeout: %v is not a positive duration", f.timeout), "give one such as 10m")
	}
	if f.logFormat != "" && !slices.Contains(logFormats, f.logFormat) {
		return ipam.BadInput(fmt.Errorf("--log-format: unknown format %q", f.logFormat), "use "+strings.Join(logFormats, " or "))
	}
	if err := f.target.check(); err != nil {
		return err
	}
	return checkOutput(f.output)
}

// connect connects to the target, waits for its first answer, and looks at the place of the
// state. If it fails, nothing stays open. writes says that the command writes anything.
func (f commandFlags) connect(ctx context.Context, w ioStreams, writes bool, p policy.Policy, logger *slog.Logger) (connection, error) {
	conn, err := f.target.connect(ctx, w, f, writes, p, logger)
	if err != nil {
		return connection{}, err
	}
	if err = conn.firstAnswer(ctx); err == nil {
		conn.warnings, err = conn.checkState(ctx, writes)
	}
	if err != nil {
		conn.close()
		return connection{}, err
	}
	return conn, nil
}

// The formats of the log.
const (
	logText = "text"
	logJSON = "json"
)

var logFormats = []string{logText, logJSON}

// newLogger returns a logger to stderr. Without --log-format, it writes text to a terminal,
// and JSON elsewhere. Of client-go, it logs warnings and errors only.
func newLogger(w ioStreams, f commandFlags) *slog.Logger {
	level := slog.LevelInfo
	if w.terminal {
		level = slog.LevelWarn // progress lines replace the info level
	}
	if f.verbose {
		level = slog.LevelDebug
	}
	text := cmp.Or(f.logFormat, logJSON) == logText || f.logFormat == "" && w.terminal
	klog.SetSlogLogger(slog.New(newHandler(w.stderr, text, slog.LevelWarn)))
	return slog.New(newHandler(w.stderr, text, level))
}

// kubeconfigOf returns the value of --kubeconfig.
func kubeconfigOf(flags *pflag.FlagSet) string { return flags.Lookup("kubeconfig").Value.String() }

// checkOutput returns an error if the output format does not exist, or if its template is
// wrong.
func checkOutput(format string) error {
	if err := print.Check(format); err != nil {
		return ipam.BadInput(fmt.Errorf("--output: %w", err), "use "+print.FormatList())
	}
	return nil
}
