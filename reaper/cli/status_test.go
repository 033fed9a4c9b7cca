package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A status fits a terminal of 24 lines, below its warnings, and says what the other commands say, of every state after
// a public report and of an outage.
func TestStatusFitsAScreenAndAgreesWithTheOtherCommands(t *testing.T) {
	const lines, columns = 24, 100
	files := append(glob(t, "testdata/answers/*.json"), outageDump)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			args := []string{"--policy=testdata/answers/policy.yaml"}
			text := outputOf(t, append([]string{"status", "--from=" + file}, args...))
			shown := 0
			for line := range strings.Lines(text) {
				if !strings.HasPrefix(line, "warning: ") {
					shown++
				}
				row := !strings.Contains(line, ". ") && strings.Contains(line, "  ")
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); row && n > columns {
					t.Errorf("a row has %d columns: %s", n, line)
				}
			}
			if shown > lines {
				t.Errorf("it has %d lines:\n%s", shown, text)
			}
			var status, pools, run struct {
				Leaked   *report.Leaked
				Findings []report.Finding
				Networks []report.NetworkReport
				Scarce   []struct {
					Backend, Name string
					Network       bool
					Part          []string
					report.Usage
				}
			}
			raw := outputOf(t, append([]string{"status", "-o=json", "--from=" + file}, args...))
			if err := reapertest.Valid("../..", []byte(raw)); err != nil {
				t.Error(err)
			}
			for said, into := range map[string]any{
				raw: &status,
				outputOf(t, append([]string{"pools", "-o=json", "--from=" + file}, args...)): &pools,
				outputOf(t, append([]string{"inspect", "-o=json", file}, args...)):           &run,
			} {
				if err := json.Unmarshal([]byte(said), into); err != nil {
					t.Fatal(err)
				}
			}
			for _, other := range []*report.Leaked{pools.Leaked, run.Leaked} {
				if diff := cmp.Diff(other, status.Leaked); diff != "" {
					t.Errorf("leaked (-other +status):\n%s", diff)
				}
			}
			if len(status.Findings) != len(run.Findings) {
				t.Errorf("%d findings, and the report has %d", len(status.Findings), len(run.Findings))
			}
			for _, s := range status.Scarce {
				for _, n := range pools.Networks {
					same := s.Network && s.Backend == n.Backend && s.Name == n.Name && len(s.Part) == 0
					if diff := cmp.Diff(n.Usage, s.Usage, cmp.Comparer(func(a, b *big.Int) bool { return fmt.Sprint(a) == fmt.Sprint(b) })); same && diff != "" {
						t.Errorf("usage of %s (-pools +status):\n%s", n.Name, diff)
					}
				}
			}
		})
	}
}

// outputOf returns what a command prints on a terminal of 100 columns.
func outputOf(t *testing.T, args []string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	w := streams(&stdout, &stderr)
	w.stdoutTerminal = true
	w.env = func(name string) string { return map[string]string{"COLUMNS": "100", "NO_COLOR": "1"}[name] }
	if code := run(t.Context(), w, args); code != exitDone {
		t.Fatalf("%v: exit code %d, %s", args, code, stderr.String())
	}
	return stdout.String()
}

// With --watch, it looks again until it is interrupted, which is no failure. What is not a terminal gets no
// sequence that empties one, although stderr may be one.
func TestStatusIsWatchedUntilItIsInterrupted(t *testing.T) {
	var stdout, stderr bytes.Buffer
	w := streams(&stdout, &stderr)
	w.terminal = true
	waits := 0
	w.sleep = func(context.Context, time.Duration) error {
		if waits++; waits > 1 {
			return errors.New("interrupted")
		}
		return nil
	}
	if code := run(t.Context(), w, []string{"status", "--watch", "--from=" + outageDump}); code != exitDone {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
	if n := strings.Count(stdout.String(), "leaked addresses"); n != waits || waits != 2 {
		t.Errorf("it looked %d times, and waited %d times:\n%s", n, waits, stdout.String())
	}
	if strings.Contains(stdout.String(), "\x1b") {
		t.Errorf("it has an escape:\n%q", stdout.String())
	}
}
