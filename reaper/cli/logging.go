package cli

import (
	"cmp"
	"io"
	"log/slog"

	"k8s.io/klog/v2"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

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
