package run_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/fault"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/world"
)

// A history is what the command prints in JSON, as far as this test looks at it.
type history struct {
	Kind           string `json:"kind"`
	StateNamespace string `json:"stateNamespace"`
	Runs           []struct {
		ID, By, Version string
		Recorded        int
		Pools           []struct{ Backend, Pool string }
		Entries         []struct {
			IP    string
			Owner struct{ Pod string }
		}
	}
}

// "What did last night's run release?" has one command as its answer (promise 10).
func TestHistoryTellsWhatARunReleased(t *testing.T) {
	w, id := afterRelease(t)
	read := func(command string, args ...string) history {
		t.Helper()
		result := w.Ends(reap.ExitDone, w.Starts(command, world.ReleaseNow, args...))
		var h history
		if err := json.Unmarshal([]byte(result.Stdout), &h); err != nil || h.Kind != "RunHistory" || h.StateNamespace != home {
			t.Fatalf("no history of %s: %v\n%s", home, err, result.Stdout)
		}
		return h
	}
	w.Proxy.Reset()
	for name, all := range map[string]history{"history": read("history"), "restore --list": read("restore", "--list")} {
		if len(all.Runs) != 1 || all.Runs[0].ID != id || all.Runs[0].Recorded != world.Records || len(all.Runs[0].Pools) == 0 ||
			!strings.HasPrefix(all.Runs[0].By, "user ") || all.Runs[0].Entries != nil {
			t.Errorf("%s: %+v, want run %s with %d records by a user", name, all.Runs, id, world.Records)
		}
	}
	one := read("history", "--run="+strings.ToLower(id))
	if last := read("history", "--run=latest"); !cmp.Equal(last, one) {
		t.Errorf("latest (-want +got):\n%s", cmp.Diff(one, last))
	}
	if len(one.Runs) != 1 || len(one.Runs[0].Entries) != world.Records {
		t.Fatalf("%+v, want %d entries", one.Runs, world.Records)
	}
	pods := map[string]bool{}
	for _, e := range one.Runs[0].Entries {
		pods[e.IP+" "+e.Owner.Pod] = true
	}
	if !pods["10.1.0.1 gone-1"] {
		t.Errorf("entries %v, want 10.1.0.1 of gone-1", pods)
	}
	if writes := fault.Writes(w.Proxy); len(writes) > 0 {
		t.Errorf("it writes: %q", writes)
	}
}
