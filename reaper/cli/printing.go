package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// maxLine is the largest size of a line of an error or of a value in the log, in bytes. An
// error may have the answers of servers to many requests.
const maxLine = 16 << 10

// linesOf returns an error in printable lines: one for each of the errors that it joins,
// and for each mistake of a policy. A line break in any other error begins no line,
// because it may come from a server.
func linesOf(err error) []string {
	var lines []string
	for _, text := range textsOf(err) {
		lines = append(lines, printable.Shorten(printable.Line(printable.Plain(text)), maxLine))
	}
	return lines
}

// told returns an error as the user is told of it: the error of an interrupted run says so.
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

// textsOf returns an error as the texts that it joins by line breaks.
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

// newHandler returns a handler that logs values of limited size to the program's stderr, as
// text or as JSON.
func newHandler(w io.Writer, text bool, level slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindString {
			a.Value = slog.StringValue(printable.Shorten(a.Value.String(), maxLine))
		} else if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(printable.Shorten(printable.Plain(err.Error()), maxLine))
		}
		return a
	}}
	if text {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(printable.JSON(w), options)
}

// A oneAtATime is a writer for several goroutines: those that log, and those that tell of
// progress.
type oneAtATime struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (o *oneAtATime) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(data)
}
