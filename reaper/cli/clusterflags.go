package cli

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// clusterFlags are the flags of every command that contacts a cluster.
type clusterFlags struct {
	policy     string
	kubeconfig string
	context    string
	namespace  string
	output     string
	verbose    bool
	timeout    time.Duration
}

// add adds the flags to a command.
func (f *clusterFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.policy, "policy", "", "policy `FILE`; without one, a dry run with the defaults")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `FILE`; by default the pod's service account, then KUBECONFIG, then ~/.kube/config")
	flags.StringVar(&f.context, "context", "", "kubeconfig context; outside a cluster, writing requires it")
	flags.StringVar(&f.namespace, "namespace", "", "namespace of ledger, journal and lock; by default the namespace of the pod or of the context")
	flags.StringVarP(&f.output, "output", "o", "table", "report format: "+report.FormatList())
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "give up after this time")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log every decision")
}

// check returns the mistakes in the flags that can be found without a cluster.
func (f clusterFlags) check() error {
	if f.timeout <= 0 {
		return reaper.BadInput(fmt.Errorf("--timeout: %v is not a positive duration", f.timeout), "give one such as 10m")
	}
	return checkOutput(f.output)
}

// newLogger returns a logger to stderr. It writes text to a terminal, and JSON elsewhere.
func newLogger(w ioStreams, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if w.terminal {
		level = slog.LevelWarn // progress lines replace the info level
	}
	if verbose {
		level = slog.LevelDebug
	}
	logger := slog.New(newHandler(w.stderr, w.terminal, level))
	klog.SetSlogLogger(logger)
	return logger
}

// checkOutput returns an error if the output format does not exist.
func checkOutput(format string) error {
	if !slices.Contains(report.Formats(), format) {
		return reaper.BadInput(fmt.Errorf("--output: unknown format %q", format), "use "+report.FormatList())
	}
	return nil
}
