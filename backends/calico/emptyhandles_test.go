package calico

import (
	"context"
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
		again  string // the answer of a second release without faults
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
		{"it was deleted, and the answer is lost", func(s *fixture) { s.always("delete", errLost) }, "again", "gone"},
		{"the program was restarted", func(s *fixture) { s.backend = s.Backend().(*Backend) }, "gone", "gone"},
		{"the program was restarted, and an ADD counts in the handle", func(s *fixture) {
			s.backend = s.Backend().(*Backend)
			_ = s.count(firstHandle, prefix("10.0.0.0/26"), 1)
		}, "changed", "changed"},
		{"the program was restarted, and the handle is gone", func(s *fixture) {
			s.backend = s.Backend().(*Backend)
			s.remove(handles, firstHandle)
		}, "gone", "gone"},
		{"the program was restarted, and the handle cannot be read", func(s *fixture) {
			s.backend = s.Backend().(*Backend)
			s.always("get", errBroken)
		}, "again", "gone"},
		{"the program was restarted, and reading is forbidden", func(s *fixture) {
			s.backend = s.Backend().(*Backend)
			s.always("get", errRefused)
		}, "final", "gone"},
		{"the program was restarted, and the handle cannot be decoded", func(s *fixture) {
			s.backend = s.Backend().(*Backend)
			s.put(handles, firstHandle, `{"block":7}`)
		}, "kept", "kept"},
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
	inShapes(t, func(t *testing.T, sh shape) {
		synctest.Test(t, func(t *testing.T) {
			s := newFixture(t, sh)
			ws := s.warrants(s.emptyHandle())
			time.Sleep(ipam.FreshnessNeverAdopted)
			s.backend = s.Backend().(*Backend) // a new backend must read the handle first
			s.before("get", func() { time.Sleep(time.Millisecond) })
			if got := outcomes(s.backend.Release(t.Context(), ws)); got != "again" || s.handle(firstHandle) == "" {
				t.Errorf("Release with an expired warrant = %s, and the store has the handle %q, want both again", got, s.handle(firstHandle))
			}
			if got := outcomes(s.backend.Release(t.Context(), ws)); got != "again" {
				t.Errorf("Release = %s, want again", got)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if got := outcomes(s.backend.Release(ctx, s.warrants(s.emptyHandle()))); got != "again" || s.handle(firstHandle) == "" {
				t.Errorf("Release under a cancelled context = %s, and the store has the handle %q", got, s.handle(firstHandle))
			}
		})
	})
}

// Resource names have no capitals, so another owner's handle can have the same
// name.
func TestEmptyHandleWhoseIDDiffersInCase(t *testing.T) {
	s := newFixture(t, shapes[0])
	ws := s.warrants(s.emptyHandle())
	s.backend = s.Backend().(*Backend)
	other := `{"handleID":"K8S-pod-network.` + sandbox(1) + `","block":{"10.0.0.0/26":1}}`
	s.put(handles, firstHandle, other)
	if got := outcomes(s.backend.Release(t.Context(), ws)); got != "gone" || s.handle(firstHandle) != other {
		t.Errorf("Release = %s, and the store has %q, want the other owner's handle", got, s.handle(firstHandle))
	}
}
