package calico

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// emptyHandle stores a handle without an address.
func (s *fixture) emptyHandle() ipam.Allocation {
	s.put(handles, firstHandle, handleJSON(s.shape, `{"10.0.0.0/26":1}`))
	return ipam.Allocation{Pool: emptyHandles, Key: firstHandle}
}

func TestEmptyHandleAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		happen func(s *fixture) // after the warrant was made
		want   string
		again  string // the answer to a second release without faults
	}{
		{"nothing", func(*fixture) {}, "gone", "gone"},
		{"the plugin deleted it", func(s *fixture) { s.remove(handles, firstHandle) }, "gone", "gone"},
		{"the plugin deletes it before it is written", func(s *fixture) { s.before("delete", func() { s.remove(handles, firstHandle) }) }, "gone", "gone"},
		{"an ADD counts in it", func(s *fixture) { _ = s.count(firstHandle, prefix("10.0.0.0/26"), 1) }, "changed", "changed"},
		{"an ADD counts in it before it is written", func(s *fixture) {
			s.before("delete", func() { _ = s.count(firstHandle, prefix("10.0.1.0/26"), 1) })
		}, "changed", "changed"},
		{"an ADD made another one", func(s *fixture) {
			s.remove(handles, firstHandle)
			s.emptyHandle()
		}, "changed", "changed"},
		{"it cannot be deleted", func(s *fixture) { s.always("delete", errBroken) }, "again", "gone"},
		{"deleting is forbidden", func(s *fixture) { s.always("delete", errRefused) }, "final", "gone"},
		{"finalizers keep it", func(s *fixture) { s.always("delete", ipam.Deleting([]string{"example.com/hold"})) }, "deleting", "gone"},
		{"it was deleted, and the answer is lost", func(s *fixture) { s.always("delete", errLost) }, "again", "gone"},
		{"another handle has its name", func(s *fixture) { // resource names have no capitals
			s.put(handles, firstHandle, `{"handleID":"K8S-pod-network.`+sandbox(1)+`","block":{"10.0.0.0/26":1}}`)
		}, "changed", "changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				s := newFixture(t, sh)
				ws := s.warrants(s.emptyHandle())
				s.onRequest(nil)
				tt.happen(s)
				if got := outcomes(s.backend.Release(t.Context(), ws)); got != tt.want {
					t.Errorf("Release = %s, want %s", got, tt.want)
				}
				s.onRequest(nil)
				if got := outcomes(s.backend.Release(t.Context(), ws)); got != tt.again {
					t.Errorf("the second Release = %s, want %s", got, tt.again)
				}
				if left := s.handle(firstHandle); (left == "") != (tt.again == "gone") {
					t.Errorf("the answer is %s, and the store has the handle %q", tt.again, left)
				}
			})
		})
	}
}

func TestEmptyHandleIsNotDeletedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, shapes[0])
		ws := s.warrants(s.emptyHandle())
		time.Sleep(ipam.FreshnessNeverAdopted + time.Millisecond)
		if got := outcomes(s.backend.Release(t.Context(), ws)); got != "again" || s.handle(firstHandle) == "" {
			t.Errorf("Release with an expired warrant = %s, and the store has the handle %q", got, s.handle(firstHandle))
		}
	})
}
