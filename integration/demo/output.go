package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// commandTimeout ends a kubectl that hangs.
const commandTimeout = time.Minute

// A demo has the cluster, the programs, and the writer for its output.
type demo struct {
	out     io.Writer
	cluster *cluster.Cluster
	plugin  *plugin.Plugin
	reaper  *reap.Reaper
	steps   int
	deployment
}

// step begins a step.
func (d *demo) step(title string) {
	d.steps++
	fmt.Fprintf(d.out, "\n%d. %s\n\n", d.steps, title)
}

// say prints a text, wrapped as given.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, format, args...)
	fmt.Fprintln(d.out)
}

// The maximum columns of a line and of a table row, without indentation. A terminal has 80 columns
// or 120.
const (
	width    = 72
	rowWidth = 116
)

// show prints the output of a program, indented. It breaks long lines.
func (d *demo) show(text string) {
	for line := range strings.Lines(text) {
		line, columns := strings.TrimRight(line, " \n"), width
		if strings.Contains(line, "  ") { // the gap between two cells
			columns = rowWidth
		}
		fmt.Fprintln(d.out, strings.TrimRight("    "+strings.Join(broken(line, columns), "\n      "), " "))
	}
}

// command prints the line that an operator would type.
func (d *demo) command(line string) {
	fmt.Fprintf(d.out, "    $ %s\n", strings.Join(broken(line, width), " \\\n      "))
}

// broken breaks a line at spaces, so that no part has more columns than this if its words allow it.
func broken(line string, columns int) []string {
	var parts []string
	for utf8.RuneCountInString(line) > columns {
		end := strings.LastIndexByte(line[:columns], ' ')
		if end < 0 {
			break
		}
		parts, line = append(parts, line[:end]), line[end+1:]
	}
	return append(parts, line)
}

// kubectl runs kubectl and prints its output. The args are printed as typed, so only the last one,
// which is quoted, may have spaces.
func (d *demo) kubectl(ctx context.Context, args ...string) error {
	typed := strings.Join(args, " ")
	if last := args[len(args)-1]; strings.ContainsAny(last, " {$") {
		typed = strings.TrimSuffix(typed, last) + "'" + last + "'"
	}
	d.command("kubectl " + typed)
	path, err := assets.Path("kubectl")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	// Its cache is removed with the cluster.
	cmd.Env = []string{"KUBECONFIG=" + d.cluster.Kubeconfig, "HOME=" + d.cluster.Dir}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	d.show(string(out))
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", typed, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}

// reap runs ip-reaper, prints its report and fails unless it exits with 0.
func (d *demo) reap(ctx context.Context, more ...string) (string, error) {
	args := append([]string{"--context", cluster.ContextName, "--grace-period=0s", "--min-age=0s"}, more...)
	d.command("ip-reaper " + strings.Join(args, " "))
	d.reaper.Env = []string{"KUBECONFIG=" + d.cluster.Kubeconfig}
	result, err := d.reaper.Run(ctx, args...)
	if err != nil {
		return "", err
	}
	d.show(result.Stdout)
	if result.ExitCode != reap.ExitDone {
		return "", fmt.Errorf("ip-reaper exits with %d:\n%s", result.ExitCode, result.Stderr)
	}
	return result.Stdout, nil
}
