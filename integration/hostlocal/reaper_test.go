package hostlocal_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/cri/critest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A world is a node with a container runtime that speaks the CRI, and the reaper's binary.
type world struct {
	*node
	runtime  *critest.Runtime
	endpoint string // of the runtime
	state    string // the folder of the reaper's state
	more     string // more of the policy
}

// newWorld returns a node like newNode. Its runtime has a sandbox that needs no address.
func newWorld(t testing.TB, spans ...span) *world {
	t.Helper()
	w := &world{node: newNode(t, spans...), runtime: critest.Start(t)}
	w.state, w.endpoint = w.path(stateDir), w.runtime.Endpoint()
	w.list(sandbox("on-the-network-of-the-node"))
	return w
}

// list makes the runtime list sandboxes.
func (w *world) list(all ...ipam.Owner) {
	for _, s := range all {
		w.runtime.Add(census.Sandbox{ID: s.Sandbox, Pod: s.Pod, UID: s.UID, Ready: true})
	}
}

// live lets the plugin give addresses to a sandbox that the runtime lists. They are as old as those
// of dead ones.
func (w *world) live(network string, of ipam.Owner) {
	w.Helper()
	w.given(network, of, dead)
	w.list(of)
}

// policy writes the policy of a run, under which everything dead is due, and returns its file. It
// leaves a file with the same policy alone: another run may be reading it.
func (w *world) policy() string {
	w.Helper()
	text, err := json.Marshal(w.settings())
	w.must(err)
	policy := fmt.Appendf(nil, `apiVersion: ip-reaper/v1alpha1
kind: ReapPolicy
dryRun: false
gracePeriod: 0s
minAge: 0s
limits: {maxFraction: 1}
journal: {restoreHold: 0s}
backends: {hostlocal: %s}
%s`, text, w.more)
	file := w.path("policy.yaml")
	if there, err := os.ReadFile(file); err != nil || !bytes.Equal(there, policy) {
		w.must(os.WriteFile(file, policy, 0o600))
	}
	return file
}

// args returns the arguments of a node command.
func (w *world) args(command ...string) []string {
	return append(append([]string{"node"}, command...),
		"--state-dir", w.state, "--runtime-endpoint", w.endpoint, "--policy", w.policy(), "-o", "json")
}

// start starts a run.
func (w *world) start(more ...string) *reap.Process {
	w.Helper()
	binary, err := reap.New()
	w.must(err)
	p, err := binary.Start(w.Context(), append(w.args("--all"), more...)...)
	w.must(err)
	return p
}

// end waits for the end of a run, which must exit with the code.
func (w *world) end(p *reap.Process, code int) reap.Result {
	w.Helper()
	result, err := p.Wait()
	w.must(err)
	if result.ExitCode != code {
		w.Fatalf("exit code %d, want %d; stdout:\n%s\nstderr:\n%s", result.ExitCode, code, result.Stdout, result.Stderr)
	}
	return result
}

// run runs the reaper, which must exit with the code and print a report.
func (w *world) run(code int, more ...string) *reap.Report {
	w.Helper()
	result := w.end(w.start(more...), code)
	if result.Report == nil {
		w.Fatalf("no report; stderr:\n%s", result.Stderr)
	}
	return result.Report
}

// restore puts back what a run released.
func (w *world) restore(id string, code int) reap.Result {
	w.Helper()
	binary, err := reap.New()
	w.must(err)
	result, err := binary.Run(w.Context(), w.args("restore", "--run="+id, "--dry-run=false")...)
	w.must(err)
	if result.ExitCode != code {
		w.Fatalf("restore: exit code %d, want %d; stdout:\n%s\nstderr:\n%s", result.ExitCode, code, result.Stdout, result.Stderr)
	}
	return result
}

// A fate is a run's verdict and reason for an allocation, and its outcome.
type fate struct{ Verdict, Reason, Outcome string }

// The fates of most allocations.
var (
	released = fate{"orphan", "SandboxAbsent", "released"}
	present  = fate{"inUse", "SandboxPresent", "kept"}
	young    = fate{"held", "TooYoung", "kept"}
	waiting  = fate{"suspected", "SandboxAbsent", "kept"}
	foreign  = fate{"held", "Protected", "kept"}
	changed  = fate{"orphan", "SandboxAbsent", "changed"}
	failed   = fate{"orphan", "SandboxAbsent", "failed"}
	notBegun = fate{"orphan", "SandboxAbsent", "notBegun"}
)

// fates returns the fates of a network's allocations, by key.
func (w *world) fates(report *reap.Report, network string) map[string]fate {
	all := map[string]fate{}
	for _, e := range report.Entries {
		if e.Pool == w.path(dataDir, network) {
			all[e.Key] = fate{e.Decision, e.Reason, e.Outcome}
		}
	}
	return all
}

// wantFates fails the test unless a network has these allocations with these fates.
func (w *world) wantFates(report *reap.Report, network string, want map[string]fate) {
	w.Helper()
	if diff := gocmp.Diff(want, w.fates(report, network)); diff != "" {
		w.Errorf("fates in %s (-want +got):\n%s", network, diff)
	}
}

// content returns what is in the data folder.
func (w *world) content() map[string]string {
	w.Helper()
	found, err := contentOf(w.path(dataDir))
	w.must(err)
	return found
}

// contentOf returns what is in a folder: the kind, permissions, time and content of each file, by
// path.
func contentOf(folder string) (map[string]string, error) {
	found := make(map[string]string)
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != folder {
			return nil // it was removed meanwhile
		}
		if err != nil || e.IsDir() {
			return err
		}
		text, err := describe(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		found[path] = text
		return err
	})
	return found, err
}

// describe returns everything about a file.
func describe(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	var content []byte
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(path)
		return "link to " + to, err
	case info.Mode().IsRegular():
		if content, err = os.ReadFile(path); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%v %v %q", info.Mode(), info.ModTime().UnixNano(), content), nil
}

// wantContent fails the test unless the data folder is as it was, without some files. The reaper
// may create the lock.
func (w *world) wantContent(before map[string]string, without ...string) {
	w.Helper()
	want, got := map[string]string{}, w.content()
	for path, text := range before {
		if !slices.Contains(without, path) {
			want[path] = text
		}
	}
	for path := range got {
		if _, known := want[path]; !known && filepath.Base(path) == "lock" {
			delete(got, path)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		w.Errorf("the data folder (-want +got):\n%s", diff)
	}
}

// left returns the names of the leases of these sandboxes in a network's folder.
func (w *world) left(network string, of ...ipam.Owner) []string {
	w.Helper()
	entries, err := os.ReadDir(w.path(dataDir, network))
	w.must(err)
	var found []string
	for _, e := range entries {
		content, err := os.ReadFile(w.lease(network, e.Name()))
		if err != nil {
			continue
		}
		for _, s := range of {
			if string(content) == s.Sandbox+"\r\n"+s.Interface {
				found = append(found, e.Name())
			}
		}
	}
	return found
}

// journals returns the IDs of the runs that have a journal, the latest last.
func (w *world) journals() []string {
	w.Helper()
	files, err := filepath.Glob(filepath.Join(w.state, "journals", "*.jsonl"))
	w.must(err)
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(modTime(a), modTime(b)) })
	var ids []string
	for _, file := range files {
		name := filepath.Base(file)
		ids = append(ids, name[:len(name)-len(".jsonl")])
	}
	return ids
}

func modTime(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return time.Now().UnixNano()
	}
	return info.ModTime().UnixNano()
}
