package calico_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// leakMany leaks the addresses of n sandboxes, every other one with both families.
func (s *fixture) leakMany(n int) {
	s.Helper()
	for i := range n {
		if pod := fmt.Sprintf("gone-%d", i); i%2 == 1 {
			s.dual(pod)
		} else {
			s.leak(pod)
		}
	}
}

// harmless has the errors with which kube-controllers says that another program wrote first: the
// reaper, or an ADD.
var harmless = []string{"update conflict", "the object has been modified", "does not exist", "not found", "is not empty"}

// Calico's own garbage collection and the reaper find the same leaks at the same time. Neither
// disturbs the other, and the result is the same (promise 1).
func TestEveryRoundBesideKubeControllers(t *testing.T) {
	const grace, leaks = time.Second, 6
	if testing.Short() {
		t.Skip("kube-controllers take long to find leaks")
	}
	each(t, func(s *fixture) {
		want := map[string]bool{}
		for i := range 2 {
			_, ip := s.live(fmt.Sprintf("web-%d", i))
			want[ip.String()] = true
		}
		c, err := s.StartControllers(s.Context(), grace)
		s.must(err)
		released := 0
		const found = "Confirmed IP leak"
		for range 2 {
			before := strings.Count(c.Log(), found)
			s.leakMany(leaks)
			for deadline := time.Now().Add(30 * time.Second); strings.Count(c.Log(), found) == before; {
				if time.Now().After(deadline) {
					s.Fatalf("kube-controllers find nothing\n%s", c.Log())
				}
				time.Sleep(10 * time.Millisecond)
			}
			for deadline := time.Now().Add(grace); time.Now().Before(deadline); {
				released += s.mustReap(reap.ExitDone, releaseNow).Summary.Released
			}
		}
		log := c.Log() // Stop removes it
		s.must(c.Stop())
		s.Logf("kube-controllers found %d, the reaper released %d", strings.Count(log, found), released)
		for line := range strings.Lines(log) {
			bad := strings.Contains(line, "[ERROR]") || strings.Contains(line, "[FATAL]") || strings.Contains(line, "panic")
			if bad && !slices.ContainsFunc(harmless, func(text string) bool { return strings.Contains(line, text) }) {
				s.Errorf("kube-controllers: %s", line)
			}
		}
		s.mustReap(reap.ExitDone, releaseNow)
		s.later(releaseNow)
		s.wantWhole(want)
	})
}
