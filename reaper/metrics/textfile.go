package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// maxFile is the largest size of a file of an earlier run, in bytes. A node has a few pools.
const maxFile = 4 << 20

// WriteFile replaces a file with the metrics of a run that ended with the exit code, in the
// form that the textfile collector of node_exporter reads. The file has mode 0644. A reader
// sees either the old file or the new one. On a node, every metric has the label node.
//
// A run that did not exit with 0 keeps the time of the last success from the old file.
func WriteFile(path string, r report.Report, exitCode int) error {
	return write(path, r.Run, exitCode, func(g gauges) { g.all(r, exitCode) })
}

// WriteEarly is WriteFile for a run that failed before it listed anything. The run has Node,
// Version and its times; whether it was meant as a dry run may be unknown.
func WriteEarly(path string, run report.RunInfo, exitCode int) error {
	return write(path, run, exitCode, func(g gauges) { g.ended(run, exitCode) })
}

// write writes the metrics that add adds, and the time of the last success.
func write(path string, run report.RunInfo, exitCode int, add func(gauges)) error {
	g, gatherer := newGauges(run.Node)
	add(g)
	if exitCode == 0 {
		g.success(seconds(run.FinishedAt))
	} else if at, ok := successIn(path); ok {
		g.success(at)
	}
	// The client writes a temporary file next to it. Its name does not end in .prom, so
	// node_exporter does not read it.
	if err := prometheus.WriteToTextfile(path, gatherer); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}

// successIn returns the time of the last success that a file has.
func successIn(path string) (at float64, ok bool) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return 0, false
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[0], namespace+"_"+lastSuccessName) {
			at, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			return at, err == nil
		}
	}
	return 0, false
}

// CheckFile returns an error if metrics cannot be written to a file: it is a folder, or the
// folder that it is in does not exist.
func CheckFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	folder := filepath.Dir(path)
	if info, err = os.Stat(folder); err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", folder)
	}
	return err
}
