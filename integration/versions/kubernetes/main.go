// Command kubernetes runs the tests that depend on the API server on each of several minor
// versions of Kubernetes, and then the plugin of kubectl by the kubectl of each version.
//
//	go run ./versions/kubernetes 1.31 1.36 1.37
//
// The programs are those of integration/bin/kubernetes-1.31, and so on, which make versions
// builds. The last lines are a table with one row a version. The version of the API server is
// what the server said at /version. The program exits with 0 only if all tests passed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/bench/program"
	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

func main() { program.Main("versions", run) }

// A suite is what one go test runs.
type suite struct {
	packages []string
	tests    string // the names that match; empty for all
}

// suites depend on the API server.
var suites = []suite{
	{packages: []string{"./run/..."}},
	{packages: []string{"./whereabouts", "./calico"}, tests: "Conform"},
	{packages: []string{"./ship/admission"}},
}

// plugin runs ip-reaper as kubectl runs it.
var plugin = suite{packages: []string{"./ship"}, tests: "^TestKubectl"}

// run is the program.
func run(ctx context.Context, versions []string, out io.Writer) error {
	if len(versions) == 0 {
		return errors.New("no version: name some, such as 1.31 1.37")
	}
	root, err := assets.Root()
	if err != nil {
		return err
	}
	tester := tester{dir: root, out: out}
	var rows []row
	for _, version := range versions {
		r := row{asked: version, began: time.Now()}
		for _, s := range suites {
			r.add(tester.test(ctx, s, version, version))
		}
		for _, kubectl := range versions {
			r.add(tester.test(ctx, plugin, version, kubectl))
		}
		r.took = time.Since(r.began)
		if err := ctx.Err(); err != nil {
			return errors.Join(err, printTable(out, rows))
		}
		rows = append(rows, r)
	}
	if err := printTable(out, rows); err != nil {
		return err
	}
	for _, r := range rows {
		if !r.ok() {
			return fmt.Errorf("tests failed on Kubernetes %s", r.asked)
		}
	}
	return nil
}
