package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// A result is what became of the tests of a suite.
type result struct {
	servers, kubectls       []string // the versions that they told
	packages                []string
	passed, skipped, failed int // tests, without their subtests
	err                     error
}

// A tester runs go test in a folder and prints what people need of it.
type tester struct {
	dir string
	out io.Writer
}

// test runs a suite on an API server and with a kubectl of these minor versions.
func (t tester) test(ctx context.Context, s suite, server, kubectl string) result {
	fmt.Fprintf(t.out, "Kubernetes %s, kubectl %s: %s %s\n", server, kubectl, strings.Join(s.packages, " "), s.tests)
	args := append([]string{"test", "-json", "-short", "-count=1", "-timeout=30m", "-run", s.tests}, s.packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), assets.KubernetesVariable+"="+server, assets.KubectlVariable+"="+kubectl)
	cmd.Stderr = t.out
	// The tests end what they started.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	events, err := cmd.StdoutPipe()
	if err != nil {
		return result{err: err}
	}
	if err := cmd.Start(); err != nil {
		return result{err: err}
	}
	began := time.Now()
	r := t.read(events)
	r.err = errors.Join(r.err, cmd.Wait())
	if r.passed == 0 {
		r.err = errors.Join(r.err, errors.New("no test passed"))
	}
	if r.err != nil {
		fmt.Fprintln(t.out, "go test:", r.err)
	}
	fmt.Fprintf(t.out, "%s, %s\n", r.tests(), time.Since(began).Round(time.Second))
	return r
}

// An event is a line of go test -json; go doc test2json tells the fields.
type event struct{ Action, Package, Test, Output string }

// What the tests say of the programs that they run.
var (
	serverSaid  = regexp.MustCompile(`API server (v\S+)`)
	kubectlSaid = regexp.MustCompile(`Client Version: (v\S+)`)
)

// read reads the events to their end, and prints the output of what fails or is skipped.
func (t tester) read(events io.Reader) result {
	var r result
	output := map[[2]string]string{} // of a test of a package
	for decoder := json.NewDecoder(events); ; {
		var e event
		if err := decoder.Decode(&e); err != nil {
			if !errors.Is(err, io.EOF) {
				r.err = fmt.Errorf("read go test -json: %w", err)
				_, _ = io.Copy(io.Discard, events) // go test must not wait for a reader
			}
			return r
		}
		test := [2]string{e.Package, e.Test}
		switch e.Action {
		case "output":
			output[test] += e.Output
			r.servers = appendSaid(r.servers, serverSaid, e.Output)
			r.kubectls = appendSaid(r.kubectls, kubectlSaid, e.Output)
		case "build-output":
			fmt.Fprint(t.out, e.Output)
		case "pass", "skip", "fail":
			if e.Action != "pass" {
				fmt.Fprint(t.out, output[test])
			}
			delete(output, test)
			r.count(e)
		}
	}
}

// tests tells how many there were.
func (r *result) tests() string {
	return fmt.Sprintf("%d passed, %d skipped, %d failed", r.passed, r.skipped, r.failed)
}

// count counts an event that ends a test or a package.
func (r *result) count(e event) {
	switch {
	case e.Test == "":
		r.packages = append(r.packages, e.Package)
	case strings.Contains(e.Test, "/"):
	case e.Action == "pass":
		r.passed++
	case e.Action == "skip":
		r.skipped++
	default:
		r.failed++
	}
}

// appendSaid adds the version that a line tells.
func appendSaid(versions []string, said *regexp.Regexp, line string) []string {
	if found := said.FindStringSubmatch(line); found != nil && !slices.Contains(versions, found[1]) {
		versions = append(versions, found[1])
	}
	return versions
}
