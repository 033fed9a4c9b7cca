package upgrade_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/nodestate"
)

// A nodeLegacy is what a version has left on a node: it saw what is dead, released what was
// due in one network, put one address back, and was killed in the midst of another run.
type nodeLegacy struct {
	Root    string // of the paths in the files
	Run     string // the ID of the run that released
	History json.RawMessage
	Waiting time.Time         // since when the address of the other network has been dead
	Held    time.Time         // since when that which was put back is held
	Entries int               // of the ledger
	Leases  map[string]string // in the end
}

// leave has a version leave its state on the node.
func (n *node) leave(p program) nodeLegacy {
	n.Helper()
	n.look(p, time.Hour, day)
	release := n.look(p, 0, day, "--pool", n.path("networks", "pods"))
	if release.Summary.Released != 2 {
		n.Fatalf("%d were released, want 2", release.Summary.Released)
	}
	l := nodeLegacy{Root: n.root, Run: release.Run.ID}
	n.run(p, reap.ExitDone, 0, day, "restore", "--run="+l.Run, "--only="+backOnNode)
	n.age()
	last := n.look(p, time.Hour, day)
	waiting, held := last.where(suspected), last.where(restored)
	if len(waiting) != 1 || len(held) != 1 {
		n.Fatalf("%v wait and %v are held, want one each", ips(waiting), ips(held))
	}
	for _, e := range waiting {
		l.Waiting = stored(*e.FirstSeen)
	}
	for _, at := range n.ledger().Restored {
		l.Held = time.Unix(at, 0)
	}
	told := historyOf(n, n.run(p, reap.ExitDone, 0, 0, "history", "--run="+l.Run))
	l.History = told.Runs[0]
	n.kill(p)
	ledger := n.ledger()
	l.Entries = len(ledger.Seen) + len(ledger.Restored) + len(ledger.Graces) + len(ledger.NodeOf)
	l.Leases = n.leases()
	return l
}

// stored returns a time as a ledger has it: the next full second.
func stored(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }

// kill kills a run that has the lock.
func (n *node) kill(p program) {
	n.Helper()
	process, goOn := n.held(p)
	n.must(process.Kill())
	_, err := process.Wait()
	n.must(err)
	goOn()
}

// held starts a run, and returns when it has the lock and asks for sandboxes. It goes on when
// the function is called.
func (n *node) held(p program) (*reap.Process, func()) {
	n.Helper()
	inside, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	n.runtime.OnList(func(ctx context.Context) error {
		once.Do(func() {
			close(inside)
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		})
		return nil
	})
	process, err := p.reaper("").Start(n.Context(), "node", "--state-dir", n.path("state"), "--runtime-endpoint", n.runtime.Endpoint(),
		"--policy", n.path("policy-1.yaml"), "-o", "json")
	n.must(err)
	<-inside
	return process, func() {
		close(goOn)
		n.runtime.OnList(nil)
	}
}

// inherits has a program take over what another version left on the node. If the leases are
// those that the version saw, and no copies, all times go on.
func (n *node) inherits(p program, l nodeLegacy, copies bool) {
	n.Helper()
	grace, hold := since(l.Waiting)+soon, since(l.Held)+soon
	r := n.look(p, grace, hold)
	if r.Summary.Released > 0 || len(r.Warnings) > 0 {
		n.Errorf("%d were released, with warnings %q", r.Summary.Released, r.Warnings)
	}
	if diff := cmp.Diff(l.Leases, n.leases()); diff != "" {
		n.Errorf("leases after a run (-want +got):\n%s", diff)
	}
	if !copies {
		for _, e := range r.where(suspected) {
			if !stored(*e.FirstSeen).Equal(l.Waiting) || !stored(*e.Due).Equal(l.Waiting.Add(grace)) {
				n.Errorf("%s is dead since %v and due at %v, want %v and %v", e.IP, e.FirstSeen, e.Due, l.Waiting, l.Waiting.Add(grace))
			}
		}
		if diff := cmp.Diff(map[string]bool{backOnNode: true}, ips(r.where(restored))); diff != "" {
			n.Errorf("held (-want +got):\n%s", diff)
		}
		over := n.look(p, since(l.Waiting), since(l.Held), "--dry-run")
		if diff := cmp.Diff(map[string]bool{backOnNode: true, "10.2.0.2": true}, ips(over.where(planned))); diff != "" {
			n.Errorf("due (-want +got):\n%s", diff)
		}
	}
	told := historyOf(n, n.run(p, reap.ExitDone, 0, 0, "history", "--run="+l.Run))
	if len(told.Runs) != 1 || len(told.Warnings) > 0 {
		n.Fatalf("a history of %d runs, with warnings %q", len(told.Runs), told.Warnings)
	}
	wantKept(n, "history", l.History, told.Runs[0])
	n.run(p, reap.ExitDone, 0, day, "restore", "--run="+l.Run)
	n.wantLeases("after the restore")
}

// nodesTakeOver has a version leave its state on a node, and another one take it over. Two
// runs at the same time: the second one steps aside.
func nodesTakeOver(t *testing.T, from, to program) {
	t.Helper()
	n := newNode(t)
	n.inherits(to, n.leave(from), false)
	process, goOn := n.held(from)
	n.run(to, reap.ExitLocked, 0, 0)
	goOn()
	result, err := process.Wait()
	if err != nil || result.ExitCode != reap.ExitDone {
		t.Errorf("exit code %d, %v\n%s", result.ExitCode, err, result.Stderr)
	}
}

// recordNode records what a version leaves on a node.
func recordNode(t *testing.T, r recording, p program) {
	t.Helper()
	n := newNode(t)
	r.write(t, "node", n.leave(p))
	if err := os.CopyFS(filepath.Join(r.dir, nodeState), os.DirFS(n.path("state"))); err != nil {
		t.Fatal(err)
	}
}

// nodeState is the folder of a recording that has the files of a node's state.
const nodeState = "node-state"

// Promises 2, 8 and 10. This version takes over the folder of a node as each earlier version
// left it. The leases are copies, with other inodes, so that their grace periods begin anew.
func TestRecordedNodeIsTakenOver(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.revision, func(t *testing.T) {
			n, l := replayNode(t, r)
			ledger, err := nodestate.NewFolder(n.path("state")).Ledgers().Load(t.Context())
			if err != nil || ledger.Len() != l.Entries {
				t.Errorf("%d entries of the ledger are read, %v, want %d", ledger.Len(), err, l.Entries)
			}
			holds := n.ledger().Restored
			n.inherits(current(t), l, true)
			kept := n.ledger().Restored
			maps.DeleteFunc(kept, func(place string, _ int64) bool { _, known := holds[place]; return !known })
			if diff := cmp.Diff(holds, kept); diff != "" {
				t.Errorf("holds (-want +got):\n%s", diff)
			}
		})
	}
}

// replayNode returns a node with what a version left there. The paths in it are those of this
// node.
func replayNode(t *testing.T, r recording) (*node, nodeLegacy) {
	t.Helper()
	n := newNode(t)
	l := read[nodeLegacy](t, r, "node")
	l.History = []byte(strings.ReplaceAll(string(l.History), l.Root, n.root))
	n.must(os.RemoveAll(n.path("networks", "pods")))
	for name, text := range l.Leases {
		n.put([]byte(text), "networks", name)
	}
	recorded := os.DirFS(filepath.Join(r.dir, nodeState))
	n.must(fs.WalkDir(recorded, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(recorded, name)
		if name != "ledger" {
			text = bytes.ReplaceAll(text, []byte(l.Root), []byte(n.root))
		}
		n.put(text, "state", name)
		return err
	}))
	n.age()
	return n, l
}
