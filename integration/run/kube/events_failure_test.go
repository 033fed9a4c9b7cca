package kube_test

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
		f := newFixture(t)
		released, notes := f.releases(3, f.pool())
		err := f.eventRecorder(f.Kube, "gone").Announce(t.Context(), f.report(), released)
		want := `1 of 4 events not written: summary: get pod ` + f.namespace + `/gone: pods "gone" not found`
		if !apierrors.IsNotFound(err) || err.Error() != want {
			t.Errorf("Announce: %v, want %s", err, want)
		}
		f.wantNotes(f.pool().UID, notes...)
	})
	t.Run("a namespace is gone", func(t *testing.T) {
		f := newFixture(t)
		pod, err := f.CreatePod(t.Context(), f.namespace, "by-hand")
		f.must(err)
		elsewhere := f.pool()
		elsewhere.Namespace = "nowhere"
		lost, _ := f.releases(2, elsewhere)
		released, notes := f.releases(3, f.pool())
		err = f.eventRecorder(f.Kube, "by-hand").Announce(t.Context(), f.report(), slices.Concat(lost, released))
		want := `2 of 6 events not written: AddressReleased about IPPool 10.0.0.0-24 in namespace nowhere: namespaces "nowhere" not found`
		if !apierrors.IsNotFound(err) || err.Error() != want {
			t.Errorf("Announce: %v, want %s", err, want)
		}
		f.wantNotes(f.pool().UID, notes...)
		if len(f.told(string(pod.UID))) != 1 {
			t.Error("no summary")
		}
	})
}

// Creating events everywhere and getting pods is needed, and nothing else. A
// right that is missing is told as such.
func TestRightsOfTheEventRecorder(t *testing.T) {
	t.Run("they suffice", func(t *testing.T) {
		f := newFixture(t)
		uid := f.job("reap-x")
		client := f.as(true, rule("events.k8s.io", "events", "create"), rule("", "pods", "get"))
		released, _ := f.releases(1, f.pool())
		more, _ := f.releases(1, f.block())
		f.must(f.eventRecorder(client, "reap-x").Announce(t.Context(), f.report(), slices.Concat(released, more)))
		for _, uid := range []string{uid, f.pool().UID, f.block().UID} {
			if len(f.told(uid)) != 1 {
				t.Errorf("nothing was told about %s", uid)
			}
		}
	})
	t.Run("only in one namespace", func(t *testing.T) {
		f := newFixture(t)
		client := f.as(false, rule("events.k8s.io", "events", "create"))
		released, notes := f.releases(1, f.pool())
		more, _ := f.releases(1, f.block())
		err := f.eventRecorder(client, "").Announce(t.Context(), f.report(), slices.Concat(more, released))
		if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "1 of 2 events not written: AddressReleased about IPAMBlock") {
			t.Errorf("Announce: %v, want that one is forbidden", err)
		}
		f.wantNotes(f.pool().UID, notes...)
	})
	t.Run("none", func(t *testing.T) {
		f := newFixture(t)
		f.job("reap-x")
		released, _ := f.releases(120, f.pool())
		err := f.eventRecorder(f.as(true), "reap-x").Announce(t.Context(), f.report(), released)
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
			f := newFixture(t)
			client, p := f.watched()
			tt.fail(p, proxy.Nth(1, proxy.On("create events")))
			released, notes := f.releases(1, f.pool())
			f.must(f.eventRecorder(client, "").Announce(t.Context(), f.report(), released))
			f.wantNotes(f.pool().UID, notes...)
		})
	}
}

// Announce ends with its context, also while an API server does not answer.
func TestAnnouncingEndsWithTheContext(t *testing.T) {
	f := newFixture(t)
	client, p := f.watched()
	gate := proxy.NewGate()
	p.Before(proxy.Any, gate.Hook)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-gate.Arrived()
		cancel()
	}()
	released, _ := f.releases(50, f.pool())
	err := f.eventRecorder(client, "reap-x").Announce(ctx, f.report(), released)
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "51 of 51 events not written: ") {
		t.Errorf("Announce: %v, want %v", err, context.Canceled)
	}
	gate.Open()
}
