package rows_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Each scenario holds one request of the reaper back, has something happen, and
// lets it go on. The store has to be what it was after that happened, but for
// what was released.
func TestWhatHappensWhileTheReaperRuns(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(s *scene)
		hold string // the first request of that kind
		do   func(s *scene)
		want []string
	}{{
		// Row 8: what the second look finds counts, and be it a pod that is
		// pending.
		name: "the pod appears between the first look and the second",
		set:  func(s *scene) { s.add(lan, "web-0") },
		hold: "get pods",
		do:   func(s *scene) { s.pod("web-0", pending) },
		want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent returned"),
	}, {
		// Row 18: the pod comes back after the second look, and its ADD
		// adopts the entry. The allocation is looked at after that.
		name: "the pod adopts its entry between the second look and the write",
		set:  func(s *scene) { s.add(lan, "web-0") },
		hold: "patch ippools",
		do:   func(s *scene) { s.runs("web-0", s.add(lan, "web-0")...) },
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent changed",
			"10.0.0.1 10.0.0.1 web-0 orphan PodAbsent returned",
		},
	}, {
		// Row 18, a step later: the entry is released, and the pod's ADD makes
		// another one beside the old allocation, which it takes for its own.
		name: "the pod adopts its reservation before it is marked",
		set:  func(s *scene) { s.add(lan, "web-0") },
		hold: "patch overlappingrangeipreservations",
		do:   func(s *scene) { s.runs("web-0", s.add(lan, "web-0")...) },
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent released",
			"10.0.0.1 10.0.0.1 web-0 orphan PodAbsent returned",
		},
	}, {
		// Row 36.
		name: "a pod is created between the list of pools and that of pods",
		set:  func(s *scene) { s.add(lan, "web-0") },
		hold: "list pods",
		do:   func(s *scene) { s.pod("web-0", pending) },
		want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 inUse PodPresent kept"),
	}, {
		// Row 36 by its cause: pods that were listed first would not have it.
		name: "a pod is created and gets an address just before the list of pools",
		set:  func(s *scene) { s.add(lan, "web-0") },
		hold: "list ippools",
		do:   func(s *scene) { s.runs("web-1", s.add(lan, "web-1")...) },
		want: append(
			both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
			both("10.0.0.0-24/2", "10.0.0.2", "10.0.0.2 web-1 inUse PodPresent kept")...),
	}, {
		// Row 37.
		name: "a pod gets an address between the list of pools and that of reservations",
		set:  func(s *scene) { s.add(lan, "web-0") },
		hold: "list overlappingrangeipreservations",
		do:   func(s *scene) { s.runs("web-1", s.add(lan, "web-1")...) },
		want: append(
			both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
			"10.0.0.2 10.0.0.2 web-1 inUse PodPresent kept"),
	}, {
		// Row 38.
		name: "another pod gets an address of the pool during the write",
		set:  func(s *scene) { s.add(lan, "web-0") },
		hold: "patch ippools",
		do:   func(s *scene) { s.runs("web-1", s.add(lan, "web-1")...) },
		want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
	}, {
		// Row 39: who gives the address back is all the same. The others go in
		// the next attempt.
		name: "a DEL comes before the write",
		set: func(s *scene) {
			s.add(lan, "web-0")
			s.add(lan, "web-1")
		},
		hold: "patch ippools",
		do: func(s *scene) {
			s.must(s.plugin.Del(s.Context(), lan, plugin.Pod{Namespace: shop, Name: "web-0"}, "sandbox-1", "net1"))
			if _, held := s.store().content["10.0.0.0-24/1"]; held {
				s.Fatal("the DEL did nothing")
			}
		},
		want: append(
			both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
			both("10.0.0.0-24/2", "10.0.0.2", "10.0.0.2 web-1 orphan PodAbsent released")...),
	}, {
		// Row 39, between entry and allocation, and then the address is given
		// to another pod: the allocation of that name is not the one that was
		// listed.
		name: "the reservation is deleted and made again for another pod",
		set:  func(s *scene) { s.add(lan, "web-0") },
		hold: "patch overlappingrangeipreservations",
		do: func(s *scene) {
			s.must(s.client().Delete().Namespace("kube-system").Resource("overlappingrangeipreservations").
				Name("10.0.0.1").Do(s.Context()).Error())
			s.runs("web-1", s.add(lan, "web-1")...)
		},
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent released",
			"10.0.0.1 10.0.0.1 web-0 orphan PodAbsent changed",
		},
	}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			tt.set(s)
			before := s.store()
			var during store
			got := s.reapWhile(tt.hold, func() {
				tt.do(s)
				during = s.store()
			})
			s.wantLines(tt.want, got.lines)
			s.wantStore(during.without(before.same(during, got.lines)))
			if got.exit != reap.ExitDone {
				t.Errorf("exit code %d\n%s", got.exit, got.stderr)
			}
		})
	}
}

// Row 9: that the API server does not answer says nothing about the pod.
func TestPodThatCannotBeLookedAtKeepsItsAddress(t *testing.T) {
	bare := lan
	bare.DisableOverlapping = true
	notFound := proxy.Answer(http.StatusNotFound, metav1.StatusReasonNotFound, "injected: no such route")
	unknown := both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 held NoCensus kept")
	failed := both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent failed")
	for _, tt := range []struct {
		name    string
		network plugin.Network
		asked   string
		answer  proxy.Action
		exit    int
		want    []string
	}{
		{"500 at the second look", lan, "get pods", proxy.InternalError(), reap.ExitPartial, failed},
		{"no answer at the second look", bare, "get pods", proxy.Drop(), reap.ExitPartial, failed[:1]},
		{"404 of somebody else at the second look", bare, "get pods", notFound, reap.ExitPartial, failed[:1]},
		{"500 at the first look", lan, "list pods", proxy.InternalError(), reap.ExitError, unknown},
		{"403 at the first look", lan, "list pods", proxy.Forbidden(), reap.ExitError, unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.add(tt.network, "web-0")
			s.watched().Before(proxy.On(tt.asked), proxy.Always(tt.answer))
			before := s.store()
			got := s.reap("")
			s.wantLines(tt.want, got.lines)
			s.wantStore(before)
			if got.exit != tt.exit {
				t.Errorf("exit code %d, want %d\n%s", got.exit, tt.exit, got.stderr)
			}
		})
	}
}

// Row 46: the reaper is killed between the entry and its allocation.
func TestNextRunFinishesWhatAKilledRunBegan(t *testing.T) {
	released := []string{"10.0.0.1 10.0.0.1 web-0 orphan PodAbsent released"}
	for _, tt := range []struct {
		name   string
		marked bool
		then   func(s *scene)
		want   []string
	}{
		{"before it marks the reservation", false, nil, released},
		{"after it marked the reservation", true, nil, released},
		{
			"after it marked the reservation, and the pod comes back", true,
			func(s *scene) { s.pod("web-0", pending) },
			[]string{"10.0.0.1 10.0.0.1 web-0 inUse PodPresent returned"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.add(lan, "web-0")
			before := s.store()
			s.killedAt("patch overlappingrangeipreservations", tt.marked)
			tombstone := strings.Contains(s.store().content["10.0.0.1"], "_ip-reaper/_released")
			if tombstone != tt.marked {
				t.Fatalf("marked: %t, want %t", tombstone, tt.marked)
			}
			if tt.then != nil {
				tt.then(s)
			}
			got := s.reap("")
			s.wantLines(tt.want, got.lines)
			s.wantStore(before.without(append(got.lines, "10.0.0.0-24/1 released")))
		})
	}
}

// reapWhile runs the reaper and does something while the first request of that
// kind is held back.
func (s *scene) reapWhile(hold string, do func()) result {
	s.Helper()
	gate := proxy.NewGate()
	s.watched().Before(proxy.Nth(1, proxy.On(hold)), gate.Hook)
	process := s.start("run", "--policy", s.policyFile(header+atOnce))
	var got reap.Result
	ended := make(chan error, 1)
	go func() {
		var err error
		got, err = process.Wait()
		ended <- err
	}()
	select {
	case <-gate.Arrived():
		do()
		gate.Open()
		s.must(<-ended)
	case err := <-ended:
		s.Fatalf("there was no %q: %v\n%s", hold, err, got.Stderr)
	}
	return s.read(got)
}

// killedAt runs the reaper and kills it at its first request of that kind,
// before it arrives or after it was carried out.
func (s *scene) killedAt(request string, carriedOut bool) {
	s.Helper()
	started := make(chan *reap.Process, 1)
	kill := func(context.Context, proxy.Request) proxy.Action {
		if err := (<-started).Kill(); err != nil {
			s.Error(err)
		}
		return proxy.Drop()
	}
	p := s.watched()
	if carriedOut {
		p.After(proxy.Nth(1, proxy.On(request)), kill)
	} else {
		p.Before(proxy.Nth(1, proxy.On(request)), kill)
	}
	process := s.start("run", "--policy", s.policyFile(header+atOnce))
	started <- process
	got, err := process.Wait()
	s.must(err)
	if got.ExitCode != reap.ExitedByKill {
		s.Fatalf("exit code %d, want it killed\n%s", got.ExitCode, got.Stderr)
	}
	s.kubeconfig = s.cluster.Kubeconfig
	// It would expire in half a minute.
	s.must(s.cluster.Kube.CoordinationV1().Leases(cluster.PoolNamespace).Delete(s.Context(), "ip-reaper", metav1.DeleteOptions{}))
}

// pending is a pod that was just scheduled.
var pending = cluster.Phase(corev1.PodPending)
