package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// commandTimeout ends a kubectl that hangs.
const commandTimeout = time.Minute

// A stage is where the play takes place: the cluster, the programs, and the
// paper that is printed on.
type stage struct {
	out     io.Writer
	cluster *cluster.Cluster
	plugin  *plugin.Plugin
	reaper  *reap.Reaper
	steps   int
	cast
}

// step begins a step.
func (s *stage) step(title string) {
	s.steps++
	fmt.Fprintf(s.out, "\n%d. %s\n\n", s.steps, title)
}

// say prints what the narrator says, wrapped as it is given.
func (s *stage) say(format string, args ...any) {
	fmt.Fprintf(s.out, format+"\n", args...)
}

// show prints what a program or a file has to say, set in from the narration.
func (s *stage) show(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(s.out, strings.TrimRight("    "+line, " \n"))
	}
}

// command prints the line that somebody would type.
func (s *stage) command(line string) {
	fmt.Fprintf(s.out, "    $ %s\n", line)
}

// kubectl runs kubectl and prints what it prints. What is in args is printed
// as typed, so it holds no spaces but in the last of them, which is quoted.
func (s *stage) kubectl(ctx context.Context, args ...string) error {
	typed := strings.Join(args, " ")
	if last := args[len(args)-1]; strings.ContainsAny(last, " {$") {
		typed = strings.TrimSuffix(typed, last) + "'" + last + "'"
	}
	s.command("kubectl " + typed)
	path, err := assets.Path("kubectl")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	// Its cache goes where everything goes away.
	cmd.Env = []string{"KUBECONFIG=" + s.cluster.Kubeconfig, "HOME=" + s.cluster.Dir}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	s.show(string(out))
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", typed, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}

// reap runs ip-reaper with a policy file of the cluster's folder, prints its
// report and fails unless it exits with 0.
func (s *stage) reap(ctx context.Context, policy string) (string, error) {
	args := []string{
		"run", "--policy", policy,
		"--kubeconfig", filepath.Base(s.cluster.Kubeconfig), "--context", cluster.ContextName,
	}
	s.command("ip-reaper " + strings.Join(args, " "))
	s.reaper.Dir = s.cluster.Dir
	result, err := s.reaper.Run(ctx, args...)
	if err != nil {
		return "", err
	}
	s.show(result.Stdout)
	if result.ExitCode != reap.ExitDone {
		return "", fmt.Errorf("ip-reaper exits with %d:\n%s", result.ExitCode, result.Stderr)
	}
	return result.Stdout, nil
}
