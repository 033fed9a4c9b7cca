package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// maxLine is the largest size of a line of an error or of a value in the log, in bytes. An
// error may have the answers of servers to many requests.
const maxLine = 16 << 10

// printError tells the user what went wrong and what to do.
func printError(w ioStreams, err error) {
	var told toldError
	var usage *ipam.InputError
	var limit *judge.LimitError
	for _, line := range linesOf(err) {
		if !errors.As(err, &told) {
			fmt.Fprintf(w.stderr, "%s: %s\n", w.name(), line)
		}
	}
	var hints []string
	switch {
	case errors.As(err, &usage) && usage.Hint != "":
		hints = []string{usage.Hint}
	case errors.As(err, &limit) && !errors.As(err, &told):
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

// A toldError is in the report, on the same terminal. Only its hint is not.
type toldError struct{ error }

func (e toldError) Unwrap() error { return e.error }

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

// sayInterrupted returns the error of a run as the user sees it: if the run was interrupted, it says so.
func sayInterrupted(ctx context.Context, err error) error {
	if exitCode(ctx, err) != exitInterrupted || strings.Contains(oneLine(err), "interrupted") {
		return err
	}
	return fmt.Errorf("interrupted: %w", err)
}

// ending returns how the program ends with an error of a run, for its report and for the ledger.
func ending(ctx context.Context) func(error) (code int, text string) {
	return func(err error) (int, string) { return exitCode(ctx, err), oneLine(sayInterrupted(ctx, err)) }
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

// newLogger returns a logger to stderr. Without a format, it writes sentences where people read them,
// and JSON elsewhere. From client-go, it logs only warnings and errors.
func newLogger(w ioStreams, format string, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if w.terminal || w.together {
		level = slog.LevelWarn // progress lines replace the info level
		format = cmp.Or(format, logText)
	}
	if verbose {
		level = slog.LevelDebug
	}
	klog.SetSlogLogger(slog.New(newHandler(w.stderr, format, "client-go: ", slog.LevelWarn)))
	return slog.New(newHandler(w.stderr, format, "", level))
}

// newHandler returns a handler that logs values of limited size, as text that begins with a prefix, or as JSON.
func newHandler(w io.Writer, format, prefix string, level slog.Level) slog.Handler {
	if format == logText {
		return teller{w: w, prefix: prefix, level: level}
	}
	return slog.NewJSONHandler(printable.JSON(w), &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { return limited(a) }})
}

// limited returns an attribute of limited size.
func limited(a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindString {
		a.Value = slog.StringValue(printable.Shorten(a.Value.String(), maxLine))
	} else if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(printable.Shorten(printable.Plain(err.Error()), maxLine))
	}
	return a
}

// A teller logs a sentence for each record: its message, what went wrong, and the other attributes.
type teller struct {
	w      io.Writer // safe for concurrent use
	prefix string
	level  slog.Level
	with   []slog.Attr
}

// Enabled implements slog.Handler.
func (t teller) Enabled(_ context.Context, level slog.Level) bool { return level >= t.level }

// WithGroup implements slog.Handler: no record has a group.
func (t teller) WithGroup(string) slog.Handler { return t }

// WithAttrs implements slog.Handler.
func (t teller) WithAttrs(more []slog.Attr) slog.Handler {
	t.with = slices.Concat(t.with, more)
	return t
}

// Handle implements slog.Handler.
func (t teller) Handle(_ context.Context, r slog.Record) error {
	says := t.prefix + r.Message
	var rest []string
	tell := func(a slog.Attr) bool {
		if value := limited(a).Value.String(); a.Key == "err" || a.Key == "text" {
			says += ": " + value
		} else {
			rest = append(rest, a.Key+" "+value)
		}
		return true
	}
	for _, a := range t.with {
		tell(a)
	}
	if r.Attrs(tell); len(rest) > 0 {
		says += " (" + strings.Join(rest, ", ") + ")"
	}
	_, err := fmt.Fprintln(t.w, printable.Line(says))
	return err
}
