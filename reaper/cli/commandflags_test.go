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

// Tables fit the terminal; elsewhere grep must find whole names.
func TestTablesFitATerminalOnly(t *testing.T) {
	for _, tt := range []struct {
		terminal, noTrunc bool
		columns           string // of the environment
		width, want       int    // of the terminal, of the tables
	}{
		{true, false, "", 132, 132}, {true, false, "", 0, 80}, {true, false, "100", 132, 100}, {true, false, "wide", 132, 132},
		{true, true, "", 132, 0}, {false, false, "100", 132, 0},
	} {
		w := ioStreams{stdoutTerminal: tt.terminal, stdoutWidth: tt.width, env: func(key string) string { return map[string]string{"COLUMNS": tt.columns}[key] }}
		got, err := outputFlags{color: "auto", noTrunc: tt.noTrunc}.options(w, "table", false)
		if err != nil || got.Width != tt.want {
			t.Errorf("%+v: width %d with error %v", tt, got.Width, err)
		}
	}
}
