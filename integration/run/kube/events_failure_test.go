package kube_test

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// If one event fails, the others are still written.
func TestOneEventThatFailsHidesNoOther(t *testing.T) {
	f := newFixture(t)
	pod, err := f.CreatePod(t.Context(), f.namespace, "by-hand")
	f.must(err)
	elsewhere := f.pool()
	elsewhere.Namespace = "nowhere"
	lost, _ := f.releases(2, elsewhere)
	released, notes := f.releases(3, f.pool())
	err = announce(t.Context(), f.eventRecorder(f.Kube, "by-hand"), f.report(), slices.Concat(lost, released))
	want := `2 of 6 events not written: AddressReleased about IPPool 10.0.0.0-24 in namespace nowhere: namespaces "nowhere" not found`
	if !apierrors.IsNotFound(err) || err.Error() != want {
		t.Errorf("Announce: %v, want %s", err, want)
	}
	f.wantNotes(f.pool().UID, notes...)
	if len(f.told(string(pod.UID))) != 1 {
		t.Error("no summary")
	}
}

// After a temporary failure, an event is still written, exactly once.
func TestEventIsWrittenOnceWhateverTheFirstAnswer(t *testing.T) {
	for _, tt := range []struct {
		name string
		fail func(*proxy.Proxy, proxy.Match)
	}{
		{"too many requests", func(p *proxy.Proxy, m proxy.Match) { p.Before(m, proxy.Always(proxy.TooManyRequests(0))) }},
		{"none, and it was written", func(p *proxy.Proxy, m proxy.Match) { p.After(m, proxy.Always(proxy.Drop())) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			client, p := f.watched()
			tt.fail(p, proxy.Nth(1, proxy.On("create events")))
			released, notes := f.releases(1, f.pool())
			f.must(announce(t.Context(), f.eventRecorder(client, ""), f.report(), released))
			f.wantNotes(f.pool().UID, notes...)
		})
	}
}
