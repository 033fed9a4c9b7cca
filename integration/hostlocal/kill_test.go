package hostlocal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// mortal returns a world in which a run removes the lease files of both families of some sandboxes,
// alongside those of live ones.
func mortal(t testing.TB) *world {
	w := newWorld(t, dual...)
	w.found = t.TempDir()
	for i := range 2 {
		w.live(pods, sandbox(fmt.Sprint("live-", i)))
	}
	for i := range 3 {
		w.given(pods, sandbox(fmt.Sprint("gone-", i)), dead)
	}
	return w
}

// afterKill checks what a killed run has left: its journal has every missing lease as it was; the
// journals restore them; and the next run completes (promises 1, 8 and 10).
func (w *world) afterKill(before map[string]string) {
	w.Helper()
	now, missing := w.content(), map[string]string{}
	for path, text := range before {
		if now[path] != text {
			missing[path] = text
		}
	}
	for path := range w.journalled() {
		delete(missing, path)
	}
	if len(missing) > 0 {
		w.Errorf("released and in no journal: %v", missing)
	}
	for _, id := range w.journals() {
		binary, err := reap.New()
		w.must(err)
		result, err := binary.Run(w.Context(), w.args("restore", "--run="+id, "--dry-run=false")...)
		w.must(err)
		if result.ExitCode != 0 && len(w.recordsOf(id)) > 0 {
			w.Errorf("restore: exit code %d; stderr:\n%s", result.ExitCode, result.Stderr)
		}
	}
	w.wantContent(before)
	w.run(0)
	var freed []string
	for path := range before {
		for i := range 3 {
			if strings.Contains(before[path], sandbox(fmt.Sprint("gone-", i)).Sandbox) {
				freed = append(freed, path)
			}
		}
	}
	if len(freed) != 6 {
		w.Fatalf("%d leases are of sandboxes that are gone, want 6", len(freed))
	}
	w.wantContent(before, freed...)
}

// recordsOf returns the leases in the journal of a run, by path, in describe's format.
func (w *world) recordsOf(id string) map[string]string {
	w.Helper()
	file := filepath.Join(w.state, "journals", id+".jsonl")
	text, err := os.ReadFile(file)
	w.must(err)
	// The last line of a run that was killed may be half a line.
	parts, err := journal.ReadParts(file, bytes.NewReader(text))
	w.must(err)
	found, _ := journal.Assemble(id, parts)
	records := map[string]string{}
	for _, r := range found.Records {
		var stored struct {
			Content []byte      `json:"content"`
			Mode    os.FileMode `json:"mode"`
			ModTime time.Time   `json:"mtime"`
		}
		w.must(json.Unmarshal(r.Stored, &stored))
		records[filepath.Join(r.Pool, r.Key)] = fmt.Sprintf("%v %v %q", stored.Mode, stored.ModTime.UnixNano(), stored.Content)
	}
	return records
}

// journalled returns the leases in all journals.
func (w *world) journalled() map[string]string {
	w.Helper()
	all := map[string]string{}
	for _, id := range w.journals() {
		maps.Copy(all, w.recordsOf(id))
	}
	return all
}

// again resets the leases, and forgets all earlier runs.
func (w *world) again(before map[string]string, from string) {
	w.Helper()
	w.must(os.RemoveAll(w.state))
	w.must(os.RemoveAll(w.path(dataDir)))
	w.must(exec.CommandContext(w.Context(), "cp", "-a", from, w.path(dataDir)).Run())
	w.wantContent(before)
}

// saved returns a copy of the data folder, and its content.
func (w *world) saved() (copied string, content map[string]string) {
	w.Helper()
	copied = w.path("saved")
	w.must(exec.CommandContext(w.Context(), "cp", "-a", w.path(dataDir), copied).Run())
	return copied, w.content()
}

// writing lists the system calls with which a run changes files or takes locks.
const writing = "openat,write,pwrite64,fsync,ftruncate,flock,mkdirat,renameat,renameat2,linkat,unlinkat,fchmod,fchmodat,utimensat"

// A syscallPoint is a system call of a run: its name, and its number among those with this name.
type syscallPoint struct {
	name string
	n    int
}

// String names the point.
func (p syscallPoint) String() string { return fmt.Sprint("before ", p.name, " ", p.n) }

// underStrace starts a run under strace, with options of strace. The run has one thread for Go's
// code, so that it makes its calls in the same order each time, as far as Go allows.
func (w *world) underStrace(options ...string) *reap.Process {
	w.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		w.Skip("SKIPPED, so that no run is killed before each of its system calls: there is no strace")
	}
	binary, err := reap.New()
	w.must(err)
	args := append(append(append([]string{"-f", "-qq"}, options...), binary.Path), w.args("--all")...)
	binary.Path, binary.Env = strace, []string{"GOMAXPROCS=1"}
	p, err := binary.Start(w.Context(), args...)
	w.must(err)
	return p
}

// points returns the system calls of a complete run that change the data folder or the state.
func (w *world) points() []syscallPoint {
	w.Helper()
	trace := w.path("trace")
	w.end(w.underStrace("-y", "-o", trace, "-e", "trace="+writing), 0)
	text, err := os.ReadFile(trace)
	w.must(err)
	call := regexp.MustCompile(`^(\d+) +(?:<\.\.\. )?(\w+)\(`)
	counts := map[string]int{} // strace counts the calls of each thread
	var points []syscallPoint
	for line := range strings.Lines(string(text)) {
		m := call.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		counts[m[1]+m[2]]++
		of := strings.Contains(line, w.state) || strings.Contains(line, w.path(dataDir))
		if of && (m[2] != "openat" || strings.Contains(line, "O_CREAT")) {
			points = append(points, syscallPoint{m[2], counts[m[1]+m[2]]})
		}
	}
	return points
}

// The run is killed before each of its system calls that write, rename, lock or remove, as far as
// Go makes them in the same thread each time (promises 1, 8 and 10). With -short, only before the
// first call of each kind.
func TestEveryStepMayBeTheLast(t *testing.T) {
	w := mortal(t)
	from, before := w.saved()
	all := w.points()
	w.again(before, from)
	if len(all) < 10 {
		t.Fatalf("a run makes %d steps: %v", len(all), all)
	}
	for _, at := range kit.SampleBy(all, func(p syscallPoint) string { return p.name }) {
		t.Run(at.String(), func(t *testing.T) {
			inject := fmt.Sprintf("inject=%s:signal=KILL:when=%d", at.name, at.n)
			p := w.underStrace("-o", os.DevNull, "-e", "trace="+at.name, "-e", inject)
			result, err := p.Wait()
			w.must(err)
			if result.ExitCode == 0 {
				t.Log("the run made fewer calls in one thread, and came to its end")
			}
			w.afterKill(before)
			w.again(before, from)
		})
	}
}
