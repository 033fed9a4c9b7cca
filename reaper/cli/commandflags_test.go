package cli

import (
	"testing"
)

// A report has colours on a terminal that can show them, unless the user wants none.
func TestReportHasColoursOnATerminalOnly(t *testing.T) {
	for _, tt := range []struct {
		name     string
		flag     string
		terminal bool
		env      map[string]string
		want     bool
	}{
		{"a terminal", "auto", true, nil, true},
		{"NO_COLOR", "auto", true, map[string]string{"NO_COLOR": "1"}, false},
		{"a dumb terminal", "auto", true, map[string]string{"TERM": "dumb"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := ioStreams{stdoutTerminal: tt.terminal, env: func(key string) string { return tt.env[key] }}
			got, err := outputFlags{color: tt.flag}.options(w, "table", false)
			if err != nil || got.Color != tt.want {
				t.Errorf("coloured %t with error %v, want %t", got.Color, err, tt.want)
			}
		})
	}
}

// On a terminal a long name would break the lines; elsewhere grep must find it.
func TestNamesAreShortenedOnATerminalOnly(t *testing.T) {
	for _, tt := range []struct{ terminal, flag, want bool }{{true, false, false}, {true, true, true}, {false, false, true}} {
		w := ioStreams{stdoutTerminal: tt.terminal, env: func(string) string { return "" }}
		got, err := outputFlags{color: "auto", noTrunc: tt.flag}.options(w, "table", false)
		if err != nil || got.NoTrunc != tt.want {
			t.Errorf("terminal %t, --no-trunc %t: whole names %t with error %v, want %t", tt.terminal, tt.flag, got.NoTrunc, err, tt.want)
		}
	}
}
