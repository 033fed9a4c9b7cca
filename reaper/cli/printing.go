package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/metrics"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// maxLine is the largest size of a line of an error or of a value in the log, in bytes. An
// error may have the answers of servers to many requests.
const maxLine = 16 << 10

// printError tells the user what went wrong and what to do.
func printError(w ioStreams, err error) {
	for _, line := range linesOf(err) {
		fmt.Fprintf(w.stderr, "%s: %s\n", w.name(), line)
	}
	var usage *ipam.InputError
	var limit *judge.LimitError
	var hints []string
	switch {
	case errors.As(err, &usage) && usage.Hint != "":
		hints = []string{usage.Hint}
	case errors.As(err, &limit):
		for _, refusal := range limit.Refusals {
			if !slices.Contains(hints, refusal.Remedy) {
				hints = append(hints, refusal.Remedy)
			}
		}
	default:
		if hint := missingRight(err); hint != "" {
			hints = []string{hint}
		}
	}
	for _, hint := range hints {
		fmt.Fprintf(w.stderr, "hint: %s\n", printable.Line(hint))
	}
}

// linesOf returns an error in printable lines: one for each of the errors that it joins,
// and for each mistake in a policy. A line break in any other error does not begin a
// line, because it may come from a server.
func linesOf(err error) []string {
	var lines []string
	for _, text := range textsOf(err) {
		lines = append(lines, printable.Shorten(printable.Line(printable.Plain(text)), maxLine))
	}
	return lines
}

// told returns an error as the user sees it: that of an interrupted run says so.
func told(ctx context.Context, err error) error {
	if exitCode(ctx, err) != exitInterrupted || strings.Contains(oneLine(err), "interrupted") {
		return err
	}
	return fmt.Errorf("interrupted: %w", err)
}

// oneLine returns an error in one printable line; nothing for no error.
func oneLine(err error) string {
	if err == nil {
		return ""
	}
	return strings.Join(linesOf(err), "; ")
}

// textsOf returns an error as the texts that it joins with line breaks.
func textsOf(err error) []string {
	var parts []string
	invalid, isPolicy := err.(*policy.Error)                //nolint:errorlint // wrapped errors are below
	joined, isJoined := err.(interface{ Unwrap() []error }) //nolint:errorlint // as above
	inner := errors.Unwrap(err)
	switch {
	case isPolicy:
		parts = invalid.Messages
	case isJoined:
		for _, one := range joined.Unwrap() {
			parts = append(parts, textsOf(one)...)
		}
	case inner != nil:
		parts = textsOf(inner)
	}
	whole := err.Error()
	prefix, ok := strings.CutSuffix(whole, strings.Join(parts, "\n"))
	if !ok || len(parts) == 0 || isJoined && prefix != "" {
		return []string{whole}
	}
	return append([]string{prefix + parts[0]}, parts[1:]...)
}

// listOf returns words for a sentence, such as "table, json or yaml".
func listOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// The formats of the log.
const (
	logText = "text"
	logJSON = "json"
)

var logFormats = []string{logText, logJSON}

// newLogger returns a logger to stderr. Without a format, it writes text to a terminal,
// and JSON elsewhere. From client-go, it logs only warnings and errors.
func newLogger(w ioStreams, format string, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if w.terminal {
		level = slog.LevelWarn // progress lines replace the info level
		format = cmp.Or(format, logText)
	}
	if verbose {
		level = slog.LevelDebug
	}
	klog.SetSlogLogger(slog.New(newHandler(w.stderr, format, slog.LevelWarn)))
	return slog.New(newHandler(w.stderr, format, level))
}

// newHandler returns a handler that logs values of limited size, as text or as JSON.
func newHandler(w io.Writer, format string, level slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindString {
			a.Value = slog.StringValue(printable.Shorten(a.Value.String(), maxLine))
		} else if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(printable.Shorten(printable.Plain(err.Error()), maxLine))
		}
		return a
	}}
	if format == logText {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(printable.JSON(w), options)
}

// maxMessage is the size up to which the kubelet keeps a termination message, in bytes.
const maxMessage = 4096

// A terminationMessage is the summary that kubectl describe shows for a finished pod.
type terminationMessage struct {
	ID       string            `json:"id"`
	ExitCode int               `json:"exitCode"`
	DryRun   bool              `json:"dryRun"`
	Leaked   *report.Leaked    `json:"leaked"`   // addresses
	Summary  report.Counts     `json:"summary"`  // allocations
	Backends map[string]string `json:"backends"` // status by name
	Error    string            `json:"error,omitempty"`
}

// writeTermination writes one line of JSON to the file if it exists. It never creates
// the file, because the kubelet does.
func writeTermination(file string, r report.Report, cause error) error {
	message := terminationMessage{ID: r.Run.ID, ExitCode: r.Result.ExitCode, DryRun: r.Run.DryRun, Leaked: r.Leaked, Summary: r.Summary, Backends: map[string]string{}}
	for _, b := range r.Backends {
		message.Backends[b.Name] = b.Status.String()
	}
	line, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("termination message: %w", err)
	}
	if cause != nil {
		// A byte of the error can take six in JSON.
		room := (maxMessage - len(line) - len(`,"error":""`) - 1) / 6
		message.Error = printable.Shorten(printable.Plain(cause.Error()), max(3, room))
		if line, err = json.Marshal(message); err != nil {
			return fmt.Errorf("termination message: %w", err)
		}
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("termination message: %w", err)
	}
	_, err = printable.JSON(f).Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// A metricsTarget is where the metrics of a run go. The zero metricsTarget is nowhere.
type metricsTarget struct {
	gateway metrics.Gateway
	file    string
}

// metricsTo returns what --push-url and --metrics-file name. It refuses a selection, whose
// figures would pass for those of all.
func metricsTo(url, file string, selection judge.Selection) (metricsTarget, error) {
	to := metricsTarget{file: file}
	for _, flag := range []struct{ name, value string }{{"--push-url", url}, {"--metrics-file", file}} {
		if flag.value != "" && !selection.Everything() {
			return to, ipam.BadInput(fmt.Errorf("%s: the figures of %s are not those of all", flag.name, selection), "leave out "+flag.name+" or the filters")
		}
	}
	if file != "" {
		if err := metrics.CheckFile(file); err != nil {
			return to, ipam.BadInput(fmt.Errorf("--metrics-file: %w", err), "give a file in a directory that exists")
		}
	}
	if url == "" {
		return to, nil
	}
	var err error
	if to.gateway, err = metrics.ParseGateway(url); err != nil {
		return to, ipam.BadInput(fmt.Errorf("--push-url: %w", err),
			"such as http://pushgateway:9091 or http://pushgateway:9091/metrics/job/ip-reaper/cluster/prod")
	}
	return to, nil
}

// tell pushes and writes the metrics of a run that ended with runErr. If that fails, it logs
// a warning, and the result of the run stays the same. A run that found the lock taken writes
// no metrics: the run that has the lock does.
func (t metricsTarget) tell(ctx context.Context, r report.Report, runErr error, logger *slog.Logger) {
	var locked *reaper.LockedError
	if errors.As(runErr, &locked) {
		return
	}
	code := exitCode(ctx, runErr)
	if !t.gateway.Nowhere() {
		if err := t.gateway.Push(ctx, r, code); err != nil {
			logger.Warn("pushing the metrics failed", "err", err)
		}
	}
	if t.file != "" {
		if err := metrics.WriteFile(t.file, r, code); err != nil {
			logger.Warn("writing the metrics failed", "err", err)
		}
	}
}

// tellEarly writes the metrics of a run on the node that failed before it listed anything. It
// pushes none: a gateway shows for how long nothing was pushed.
func (t metricsTarget) tellEarly(ctx context.Context, node string, started time.Time, runErr error, logger *slog.Logger) {
	if t.file == "" {
		return
	}
	run := report.RunInfo{Node: node, Version: buildVersion(), StartedAt: started, FinishedAt: time.Now()}
	if err := metrics.WriteEarly(t.file, run, exitCode(ctx, runErr)); err != nil {
		logger.Warn("writing the metrics failed", "err", err)
	}
}
