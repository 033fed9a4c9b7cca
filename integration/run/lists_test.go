package run_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A list of pods that expires in the middle begins anew: half a list would make orphans
// of the allocations of the other half (promises 1 and 2).
func TestListThatExpiresBeginsAnew(t *testing.T) {
	f := newFixture(t)
	live := map[int]string{}
	for i := range 501 { // one more than a page has
		live[i+1] = fmt.Sprintf("live-%03d", i)
	}
	f.barePods(slices.Collect(maps.Values(live)))
	f.fill("10.1.0.0/16", live)
	end := f.owners()
	f.fill("10.2.0.0/24", map[int]string{1: "gone"})
	unknown := func() { // without the version of the API server, pods are read by pages
		f.toReaper.Before(proxy.On("GET /version"), proxy.Always(proxy.Forbidden()))
	}
	expired := proxy.Answer(http.StatusGone, metav1.StatusReasonExpired, "injected: the continue token is too old")
	second := func(r proxy.Request) bool {
		return r.String() == "list pods" && strings.Contains(r.Query, "continue=")
	}

	t.Run("every time", func(t *testing.T) {
		unknown()
		f.toReaper.Before(second, proxy.Always(expired))
		f.reap(reap.ExitError, atOnce)
		if got := reap.StoreWrites(f.toReaper.Mutations()); len(got) > 0 {
			t.Errorf("writes: %v, want none", got)
		}
	})
	t.Run("once", func(t *testing.T) {
		f.toReaper.Reset()
		unknown()
		f.toReaper.Before(proxy.Nth(1, second), proxy.Always(expired))
		result := f.reap(reap.ExitDone, atOnce)
		if got := f.toReaper.Counts()["list pods"]; got != 4 {
			t.Errorf("%d requests for pages of pods, want 4: two pages, twice", got)
		}
		if got := result.Report.Summary.InUse; got != 2*len(live) {
			t.Errorf("%d allocations in use, want %d", got, 2*len(live))
		}
		if diff := cmp.Diff(end, f.owners()); diff != "" {
			t.Errorf("owners (-want +got):\n%s", diff)
		}
	})
}

// barePods creates many pods at once, which show nothing.
func (f *fixture) barePods(names []string) {
	f.Helper()
	f.must(parallel.Each(16, names, func(_ int, name string) error {
		_, err := f.Kube.CoreV1().Pods(shop).Create(f.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/main:1"}}},
		}, metav1.CreateOptions{})
		return err
	}))
}

// A run does what a server asks for that wants it to come back later.
func TestReadThatHasToWaitIsMadeAgain(t *testing.T) {
	f := newFixture(t)
	f.fill("10.1.0.0/24", map[int]string{1: "gone"})
	for _, request := range []string{"list pods", "get pods"} {
		f.toReaper.Before(proxy.Nth(1, proxy.On(request)), proxy.Always(proxy.TooManyRequests(time.Second)))
	}
	began := time.Now()
	f.reap(reap.ExitDone, atOnce)
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("the run took %v, and was asked twice to wait for a second", took)
	}
	if diff := cmp.Diff(map[string]string{}, f.owners()); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}
