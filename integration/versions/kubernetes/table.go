package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A row is what ran on one version.
type row struct {
	asked string
	result
	began time.Time
	took  time.Duration
}

// add adds what became of a suite.
func (r *row) add(s result) {
	r.passed += s.passed
	r.skipped += s.skipped
	r.failed += s.failed
	r.err = cmp.Or(r.err, s.err)
	for _, both := range []struct{ to, from *[]string }{
		{&r.servers, &s.servers}, {&r.kubectls, &s.kubectls}, {&r.packages, &s.packages},
	} {
		for _, name := range *both.from {
			if !slices.Contains(*both.to, name) {
				*both.to = append(*both.to, name)
			}
		}
	}
}

// ok reports whether all tests passed, on one API server that told its version.
func (r *row) ok() bool { return r.err == nil && r.failed == 0 && len(r.servers) == 1 }

// printTable prints the table.
func printTable(out io.Writer, rows []row) error {
	lines := []string{
		"| Kubernetes | API server | kubectl | packages | tests | result | took | date |",
		"|---|---|---|---|---|---|---|---|",
	}
	for _, r := range rows {
		verdict := "ok"
		if !r.ok() {
			verdict = "**failed**"
		}
		packages := make([]string, len(r.packages))
		for i, name := range r.packages {
			packages[i] = strings.TrimPrefix(name, "github.com/ip-reaper/ip-reaper/integration/")
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |", r.asked, strings.Join(r.servers, ", "),
			strings.Join(r.kubectls, ", "), strings.Join(packages, ", "), r.tests(), verdict,
			r.took.Round(time.Second), r.began.UTC().Format(time.DateOnly)))
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}
