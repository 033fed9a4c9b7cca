package lockevents_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// A failure of one event, or of the summary, keeps no other from being told.
func TestOneEventThatFailsHidesNoOther(t *testing.T) {
	t.Run("the pod is gone", func(t *testing.T) {
		s := newScene(t)
		released, notes := s.releases(3, s.pool())
		err := s.eventRecorder(s.Kube, "gone").Announce(t.Context(), s.report(), released)
		want := `1 of 4 events not written: summary: get pod ` + s.namespace + `/gone: pods "gone" not found`
		if !apierrors.IsNotFound(err) || err.Error() != want {
			t.Errorf("Announce: %v, want %s", err, want)
		}
		s.wantNotes(s.pool().UID, notes...)
	})
	t.Run("a namespace is gone", func(t *testing.T) {
		s := newScene(t)
		pod, err := s.CreatePod(t.Context(), s.namespace, "by-hand")
		s.must(err)
		elsewhere := s.pool()
		elsewhere.Namespace = "nowhere"
		lost, _ := s.releases(2, elsewhere)
		released, notes := s.releases(3, s.pool())
		err = s.eventRecorder(s.Kube, "by-hand").Announce(t.Context(), s.report(), slices.Concat(lost, released))
		want := `2 of 6 events not written: AddressReleased about IPPool 10.0.0.0-24 in namespace nowhere: namespaces "nowhere" not found`
		if !apierrors.IsNotFound(err) || err.Error() != want {
			t.Errorf("Announce: %v, want %s", err, want)
		}
		s.wantNotes(s.pool().UID, notes...)
		if len(s.told(string(pod.UID))) != 1 {
			t.Error("no summary")
		}
	})
}

// Creating events everywhere and getting pods is needed, and nothing else. A
// right that is missing is told as such.
func TestRightsOfTheEventRecorder(t *testing.T) {
	t.Run("they suffice", func(t *testing.T) {
		s := newScene(t)
		uid := s.job("reap-x")
		client := s.as(true, rights("events.k8s.io", "events", "create"), rights("", "pods", "get"))
		released, _ := s.releases(1, s.pool())
		more, _ := s.releases(1, s.block())
		s.must(s.eventRecorder(client, "reap-x").Announce(t.Context(), s.report(), slices.Concat(released, more)))
		for _, uid := range []string{uid, s.pool().UID, s.block().UID} {
			if len(s.told(uid)) != 1 {
				t.Errorf("nothing was told about %s", uid)
			}
		}
	})
	t.Run("only in one namespace", func(t *testing.T) {
		s := newScene(t)
		client := s.as(false, rights("events.k8s.io", "events", "create"))
		released, notes := s.releases(1, s.pool())
		more, _ := s.releases(1, s.block())
		err := s.eventRecorder(client, "").Announce(t.Context(), s.report(), slices.Concat(more, released))
		if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "1 of 2 events not written: AddressReleased about IPAMBlock") {
			t.Errorf("Announce: %v, want that one is forbidden", err)
		}
		s.wantNotes(s.pool().UID, notes...)
	})
	t.Run("none", func(t *testing.T) {
		s := newScene(t)
		s.job("reap-x")
		released, _ := s.releases(120, s.pool())
		err := s.eventRecorder(s.as(true), "reap-x").Announce(t.Context(), s.report(), released)
		if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "101 of 101 events not written: summary: get pod") {
			t.Errorf("Announce: %v, want that all are forbidden", err)
		}
	})
}

// What fails for a passing reason is told in the end, and once.
func TestEventIsWrittenOnceWhateverTheFirstAnswer(t *testing.T) {
	for _, tt := range []struct {
		name string
		fail func(*proxy.Proxy, proxy.Match)
	}{
		{"an error", func(p *proxy.Proxy, m proxy.Match) { p.Before(m, proxy.Always(proxy.InternalError())) }},
		{"too many requests", func(p *proxy.Proxy, m proxy.Match) { p.Before(m, proxy.Always(proxy.TooManyRequests(0))) }},
		{"none, and nothing was written", func(p *proxy.Proxy, m proxy.Match) { p.Before(m, proxy.Always(proxy.Drop())) }},
		{"none, and it was written", func(p *proxy.Proxy, m proxy.Match) { p.After(m, proxy.Always(proxy.Drop())) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			client, p := s.watched()
			tt.fail(p, proxy.Nth(1, proxy.On("create events")))
			released, notes := s.releases(1, s.pool())
			s.must(s.eventRecorder(client, "").Announce(t.Context(), s.report(), released))
			s.wantNotes(s.pool().UID, notes...)
			if n := p.Counts()["create events"]; n != 2 {
				t.Errorf("written by %d requests, want 2", n)
			}
		})
	}
}

// Announce ends with its context, also while an API server does not answer.
func TestAnnouncingEndsWithTheContext(t *testing.T) {
	s := newScene(t)
	client, p := s.watched()
	gate := proxy.NewGate()
	p.Before(proxy.Any, gate.Hook)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-gate.Arrived()
		cancel()
	}()
	released, _ := s.releases(50, s.pool())
	err := s.eventRecorder(client, "reap-x").Announce(ctx, s.report(), released)
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "51 of 51 events not written: ") {
		t.Errorf("Announce: %v, want %v", err, context.Canceled)
	}
	gate.Open()
}
