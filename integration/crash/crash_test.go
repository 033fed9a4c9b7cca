// Package crash_test shows on a real API server, with addresses that the real
// plugins gave out, that ip-reaper does no harm where a run or a restoration is
// killed at a write, stopped, loses an answer, or meets a fault or another one. The
// numbers in the comments are those of the promises in docs/design.md.
package crash_test

import (
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

func TestMain(m *testing.M) {
	kit.Main(m, kit.Options{Sets: []kit.Set{kit.Calico, kit.ReservedIPs}, Policies: true})
}

// fixture is the world in which things go wrong, after an undisturbed run, whose
// writes it returns too.
func fixture(t *testing.T) (*kit.World, []string) {
	t.Helper()
	w := kit.NewWorld(t)
	return w, w.Undisturbed()
}

// released is a fixture in which a run has released everything, and the run's ID.
func released(t *testing.T) (*kit.World, string) {
	t.Helper()
	w, _ := fixture(t)
	return w, w.Journals()[0]
}

// wantTrue fails the test unless a report tells what the stores hold: what it calls
// released is gone, what it calls failed has a reason, and all else is there
// (promise 7).
func wantTrue(w *kit.World, r *reap.Report) {
	w.Helper()
	held, err := w.Allocated(w.Context())
	w.Must(err)
	stores := w.Stores()
	owners := stores.Owners()
	paths := map[string]bool{}
	for path := range stores {
		paths[path[strings.LastIndex(path, "/")+1:]] = true
	}
	for _, e := range r.Entries {
		var stored bool
		switch {
		case e.Backend == "whereabouts":
			_, stored = owners[e.Pool[strings.LastIndex(e.Pool, "/")+1:]+" "+e.IP]
		case e.Backend == "overlapping":
			_, stored = owners[e.IP]
		case e.Backend == "calico" && e.IP != "":
			stored = held[e.IP]
		default:
			stored = paths[strings.ToLower(e.Key)]
		}
		switch e.Outcome {
		case "released":
			if stored {
				w.Errorf("the report says that %s %s%s was released, and the store has it", e.Backend, e.Key, e.IP)
			}
		case "failed":
			if strings.TrimSpace(e.Error) == "" {
				w.Errorf("the report does not say why %s %s%s failed", e.Backend, e.Key, e.IP)
			}
		default:
			if !stored {
				w.Errorf("the report says that %s %s%s was %s, and the store does not have it", e.Backend, e.Key, e.IP, e.Outcome)
			}
		}
	}
}

// wantNamed fails the test unless the report says what failed, and why.
func wantNamed(w *kit.World, result reap.Result) {
	w.Helper()
	for _, b := range result.Report.Backends {
		if b.Status != "ok" && b.Status != "skipped" && b.Message != "" {
			return
		}
	}
	for _, e := range result.Report.Entries {
		if e.Outcome == "failed" && e.Error != "" {
			return
		}
	}
	if len(result.Report.Warnings) == 0 {
		w.Errorf("exit code %d, and the report does not say what failed; the log does:\n%s", result.ExitCode, result.Stderr)
	}
}
