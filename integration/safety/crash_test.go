package safety_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Pods named slow-… keep their addresses for an hour; it is the ledger that
// remembers them. Writes come in the same order in every run.
const (
	slowRule = "rules:\n- {match: {pods: [\"slow-*\"]}, gracePeriod: 1h}\n"
	inOrder  = "--concurrency=1"
)

// A moment is where a process is killed: before its write is forwarded, or
// when the API server has answered and the process has not heard of it.
type moment struct {
	name string
	hook func(*proxy.Proxy, proxy.Match, proxy.Hook)
}

var moments = []moment{
	{"before", (*proxy.Proxy).Before},
	{"after", (*proxy.Proxy).After},
}

// killed runs under a policy, and kills the run, as kill -9 does, at the write
// that matches. Where a run does not come to that write, since a grace period
// has to pass, the next one may.
func (s *scene) killed(t *testing.T, at moment, match proxy.Match, policy string) {
	t.Helper()
	process := make(chan *reap.Process, 1)
	at.hook(s.toReaper, match, func(context.Context, proxy.Request) proxy.Action {
		if err := (<-process).Kill(); err != nil {
			t.Error(err)
		}
		return proxy.Drop()
	})
	for deadline := time.Now().Add(10 * time.Second); ; {
		p := s.start(t, policy, inOrder)
		process <- p
		result, err := p.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if result.ExitCode == reap.ExitedByKill {
			return
		}
		if <-process; result.ExitCode != reap.ExitDone || time.Now().After(deadline) {
			t.Fatalf("exit code %d, want that the run is killed\n%s", result.ExitCode, result.Stderr)
		}
	}
}

// mutation selects the nth write of a run.
func mutation(n int) proxy.Match { return func(r proxy.Request) bool { return r.Mutation == n } }

// wreck is what crashes are tried on: two pools with somebody alive, somebody
// dead, and somebody dead whose time is not over, and their allocations. It
// returns the end to which every run has to come.
func (s *scene) wreck(t *testing.T) (end store) {
	t.Helper()
	s.wipe(t, "web-0")
	s.put(t, network.Range, map[int]string{1: "web-0", 2: "live"})
	s.put(t, "10.2.0.0/24", map[int]string{1: "gone", 2: "slow-1"})
	return s.store(t).without(s.ref("web-0"), s.ref("gone"))
}

// writes are those of an undisturbed run on the wreck.
func (s *scene) writes(t *testing.T) []string {
	t.Helper()
	end := s.wreck(t)
	s.run(t, reap.ExitDone, releaseNow+slowRule, inOrder)
	s.checkStore(t, end)
	var writes []string
	for _, r := range s.toReaper.Requests() {
		if r.Mutating() {
			writes = append(writes, r.String()+" "+r.Name)
		}
	}
	return writes
}

// A run that is killed at any of its writes loses nothing that is in use, and
// leaves a state that the next run brings to the same end as if nothing had
// happened: tombstones are finished, no address stays blocked (promise 8).
func TestNextRunFinishesWhatAKilledOneLeft(t *testing.T) {
	s := newScene(t)
	s.pod(t, "live")
	for n, write := range s.writes(t) {
		for _, at := range moments {
			t.Run(fmt.Sprintf("%s %d %s", at.name, n+1, write), func(t *testing.T) {
				end := s.wreck(t)
				s.killed(t, at, mutation(n+1), releaseNow+slowRule)
				s.checkKept(t, end)
				s.converge(t, releaseNow+slowRule)
				s.checkStore(t, end)
				s.checkRemembered(t, 2)
			})
		}
	}
}

// The same, and before the next run a pod comes back under the name of the
// dead one and gets an address from the plugin. It has what its ADD got, also
// after that run; and when it is gone again, so is everything it had.
func TestPodThatComesBackAfterAKilledRunKeepsWhatItsAddGot(t *testing.T) {
	s := newScene(t)
	s.pod(t, "live")
	for n, write := range s.writes(t) {
		for _, at := range moments {
			t.Run(fmt.Sprintf("%s %d %s", at.name, n+1, write), func(t *testing.T) {
				end := s.wreck(t)
				s.killed(t, at, mutation(n+1), releaseNow+slowRule)
				s.toReaper.Reset()
				s.pod(t, "web-0")
				ip := s.mustAdd(t, network, "web-0", newSandbox)
				s.checkKept(t, end)
				s.converge(t, releaseNow+slowRule)
				s.checkWhole(t, network, "web-0", newSandbox, ip)
				s.running(t, "web-0", ip)
				s.converge(t, releaseNow+slowRule)
				s.checkWhole(t, network, "web-0", newSandbox, ip)
				s.dies(t, "web-0")
				s.converge(t, releaseNow+slowRule)
				s.checkStore(t, end)
			})
		}
	}
}

// checkKept fails the test if something is missing of what has to stay.
func (s *scene) checkKept(t *testing.T, kept store) {
	t.Helper()
	st := s.store(t)
	for key, owner := range kept {
		if st[key] != owner {
			t.Errorf("%s is %q, want %q", key, st[key], owner)
		}
	}
}

// A grace period that is over stays over, and one that is not does not begin
// anew, wherever the runs that count it are killed.
func TestKilledRunDoesNotRestartTheGracePeriod(t *testing.T) {
	for _, tt := range []struct {
		name  string
		match proxy.Match
		at    moment
		left  int // what the ledger remembers after the kill
	}{
		{"before the ledger is created", proxy.On("create configmaps"), moments[0], 0},
		{"after the ledger is created", proxy.On("create configmaps"), moments[1], 6},
		{"after a tombstone is written", proxy.On("patch overlappingrangeipreservations"), moments[1], 6},
		{"before the ledger is updated", proxy.On("update configmaps"), moments[0], 6},
		{"after the ledger is updated", proxy.On("update configmaps"), moments[1], 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const policy = policyHead + "dryRun: false\nminAge: 0s\ngracePeriod: 1s\n" + slowRule
			s := newScene(t)
			s.pod(t, "live")
			end := s.wreck(t)
			s.killed(t, tt.at, tt.match, policy)
			s.checkKept(t, end)
			s.checkRemembered(t, tt.left)

			s.converge(t, policy)
			if tt.left == 0 || tt.name == "after the ledger is created" {
				// Nobody's time was over.
				if got := len(s.store(t)); got != len(end)+4 {
					t.Errorf("%d entries and reservations are left, want %d", got, len(end)+4)
				}
				s.convergeTo(t, end, policy)
			}
			s.checkStore(t, end)
			s.converge(t, policy)
			s.checkRemembered(t, 2)
		})
	}
}

// convergeTo runs until the store is as it ought to be, or ten seconds long:
// a grace period has to pass.
func (s *scene) convergeTo(t *testing.T, want store, policy string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !maps.Equal(s.store(t), want) && time.Now().Before(deadline); {
		s.converge(t, policy)
	}
}

// checkRemembered compares how many allocations the ledger remembers.
func (s *scene) checkRemembered(t *testing.T, want int) {
	t.Helper()
	cm, err := s.Kube.CoreV1().ConfigMaps(s.ledgerIn).Get(t.Context(), ledger, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && want == 0 {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(cm.BinaryData["ledger.json.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	var remembered struct{ Seen map[string]int64 }
	if err := json.NewDecoder(r).Decode(&remembered); err != nil {
		t.Fatal(err)
	}
	if got := len(remembered.Seen); got != want {
		t.Errorf("the ledger remembers %d reservations, want %d", got, want)
	}
}
