package safety_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A list of pods that expires in the middle begins anew: half a list would
// make orphans of the other half's allocations (promises 1 and 2).
func TestListThatExpiresBeginsAnew(t *testing.T) {
	s := newScene(t)
	live := map[int]string{}
	for i := range 501 { // one more than a page has
		live[i+1] = fmt.Sprintf("live-%03d", i)
	}
	s.pods(t, live)
	s.put(t, "10.1.0.0/16", live)
	s.put(t, "10.2.0.0/24", map[int]string{1: "gone"})
	end := s.store(t).without(s.ref("gone"))
	expired := proxy.Answer(http.StatusGone, metav1.StatusReasonExpired, "injected: the continue token is too old")
	second := func(r proxy.Request) bool {
		return r.String() == "list pods" && strings.Contains(r.Query, "continue=")
	}

	t.Run("every time", func(t *testing.T) {
		s.toReaper.Before(second, proxy.Always(expired))
		s.run(t, reap.ExitError, releaseNow)
		if got := reap.StoreWrites(s.toReaper.Mutations()); len(got) > 0 {
			t.Errorf("writes: %v, want none", got)
		}
	})
	t.Run("once", func(t *testing.T) {
		s.toReaper.Reset()
		s.toReaper.Before(proxy.Nth(1, second), proxy.Always(expired))
		result := s.run(t, reap.ExitDone, releaseNow)
		if got := s.toReaper.Counts()["list pods"]; got != 4 {
			t.Errorf("%d requests for pages of pods, want 4: two pages, twice", got)
		}
		if got := result.Report.Summary.InUse; got != 2*len(live) {
			t.Errorf("%d reservations in use, want %d", got, 2*len(live))
		}
		s.checkStore(t, end)
	})
}

// A server that asks to come back later is heard.
func TestReadThatHasToWaitIsMadeAgain(t *testing.T) {
	s := newScene(t)
	s.pod(t, "bystander")
	s.put(t, network.Range, map[int]string{1: "gone"})
	for _, request := range []string{"list pods", "get pods"} {
		s.toReaper.Before(proxy.Nth(1, proxy.On(request)), proxy.Always(proxy.TooManyRequests(time.Second)))
	}
	began := time.Now()
	s.run(t, reap.ExitDone, releaseNow)
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("the run took %v, and was asked twice to wait for a second", took)
	}
	s.checkStore(t, store{})
}
