package safety_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// faults are what goes wrong with a request. Those that pass are over when it
// is made again.
var faults = []struct {
	name   string
	action proxy.Action
	passes bool
}{
	{"422", proxy.Invalid(), false},
	{"409", proxy.Conflict(), true},
	{"429", proxy.TooManyRequests(0), true},
	{"500", proxy.InternalError(), true},
	{"broken connection", proxy.Drop(), true},
}

// Whatever goes wrong once with a request of a run, the run does all the same
// what it is there for. It may also give up on what would not get better: then
// it exits with 3 and a report that names what failed, or, if nobody could be
// asked who is alive, with 1 and before the first write. The report is true,
// nothing in use is touched, and the next run does the rest (promises 1, 2, 7,
// 8 and 9).
func TestFaultyRequestIsTriedAgainOrReported(t *testing.T) {
	s := newScene(t)
	s.pod(t, "live")
	s.writes(t)
	for _, request := range slices.Sorted(maps.Keys(s.toReaper.Counts())) {
		for _, f := range faults {
			t.Run(f.name+" to "+request, func(t *testing.T) {
				s.faulty(t, f.passes, func(p *proxy.Proxy) {
					p.Before(proxy.Nth(1, proxy.On(request)), proxy.Always(f.action))
				})
			})
		}
	}
}

// Faults that come again, or that hide that a write was done.
func TestFaultyWriteIsTriedAgainOrReported(t *testing.T) {
	s := newScene(t)
	s.pod(t, "live")
	s.writes(t)
	writes := slices.Sorted(maps.Keys(s.toReaper.Mutations()))
	for _, f := range faults {
		if f.name == "429" || f.name == "500" {
			continue // these go the way of a broken connection
		}
		t.Run(f.name+" to every other write", func(t *testing.T) {
			s.faulty(t, false, func(p *proxy.Proxy) {
				p.Before(func(r proxy.Request) bool { return r.Mutation%2 == 1 }, proxy.Always(f.action))
			})
		})
	}
	for _, request := range writes {
		for _, f := range faults[3:] {
			t.Run(f.name+" to the first two "+request, func(t *testing.T) {
				s.faulty(t, f.passes, func(p *proxy.Proxy) {
					p.Before(proxy.First(2, proxy.On(request)), proxy.Always(f.action))
				})
			})
			t.Run(f.name+" in the answer to "+request, func(t *testing.T) {
				s.faulty(t, f.passes, func(p *proxy.Proxy) {
					p.After(proxy.Nth(1, proxy.On(request)), proxy.Always(f.action))
				})
			})
		}
	}
}

// Where every other request fails, whatever it is.
func TestRunBehindABrokenNetworkReportsWhatItCouldNotDo(t *testing.T) {
	s := newScene(t)
	s.pod(t, "live")
	s.faulty(t, false, func(p *proxy.Proxy) {
		p.Before(func(r proxy.Request) bool { return r.Number%2 == 1 }, proxy.Always(proxy.Drop()))
	})
}

// faulty lets a run meet what is injected, and the next one nothing.
func (s *scene) faulty(t *testing.T, passes bool, inject func(*proxy.Proxy)) {
	t.Helper()
	end := s.wreck(t)
	before := s.store(t)
	inject(s.toReaper)
	result, err := s.start(t, releaseNow+slowRule).Wait()
	if err != nil {
		t.Fatal(err)
	}
	if result.Report == nil {
		t.Fatalf("no report\n%s", result.Stderr)
	}
	switch {
	case passes || result.ExitCode == reap.ExitDone:
		checkExit(t, reap.ExitDone, result)
		s.checkStore(t, end)
	case result.ExitCode == reap.ExitError:
		s.checkStore(t, before)
	default:
		checkExit(t, reap.ExitPartial, result)
		checkNamesFailure(t, result)
	}
	s.checkKept(t, end)
	s.checkTrue(t, result.Report)
	s.converge(t, releaseNow+slowRule)
	s.checkStore(t, end)
	s.checkRemembered(t, 2)
}

// checkNamesFailure fails the test unless the report tells what failed, and
// why.
func checkNamesFailure(t *testing.T, result reap.Result) {
	t.Helper()
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
	if w := warnings(t, result); len(w) > 0 {
		return
	}
	t.Errorf("exit code %d, and the report does not say what failed; the log does:\n%s", result.ExitCode, result.Stderr)
}

// warnings are the sentences of the report about the run as a whole.
func warnings(t *testing.T, result reap.Result) []string {
	t.Helper()
	var report struct{ Warnings []string }
	if err := json.Unmarshal([]byte(result.Stdout), &report); err != nil {
		t.Fatal(err)
	}
	return report.Warnings
}
