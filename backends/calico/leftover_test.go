package calico

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// empty handle puts a handle without an address on the fakeStore.
func (s *scene) emptyHandle() reaper.Allocation {
	s.put(handles, firstHandle, counting(s.shape, `{"10.0.0.0/26":1}`))
	return reaper.Allocation{Pool: emptyHandles, Key: firstHandle}
}

func TestEmptyHandleIsDeleted(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newScene(t, sh)
		ws := s.warrants(s.emptyHandle())
		s.onRequest(nil)
		if got := words(s.backend.Release(t.Context(), emptyHandles, append(ws, reaper.Warrant{}))); got != "gone no-warrant" {
			t.Errorf("Release = %s", got)
		}
		if diff := cmp.Diff([]string{"delete handle " + firstHandle}, s.requests()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if left := s.snapshot(); len(left) > 0 {
			t.Errorf("left is %v", left)
		}
	})
}

func TestEmptyHandleAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		happen func(s *scene) // after the warrant was given
		want   string
		again  string // of a second release when all is well
	}{
		{"nothing", func(*scene) {}, "gone", "gone"},
		{"the plugin deleted it", func(s *scene) { s.remove(handles, firstHandle) }, "gone", "gone"},
		{"the plugin deletes it before it is written", func(s *scene) { s.before("delete", func() { s.remove(handles, firstHandle) }) }, "gone", "gone"},
		{"an ADD counts in it", func(s *scene) { _ = s.count(firstHandle, prefix("10.0.0.0/26"), 1) }, "changed", "changed"},
		{"an ADD counts in it before it is written", func(s *scene) {
			s.before("delete", func() { _ = s.count(firstHandle, prefix("10.0.1.0/26"), 1) })
		}, "changed", "changed"},
		{"an ADD made another one", func(s *scene) {
			s.remove(handles, firstHandle)
			s.emptyHandle()
		}, "changed", "changed"},
		{"it cannot be deleted", func(s *scene) { s.always("delete", errBroken) }, "again", "gone"},
		{"deleting is forbidden", func(s *scene) { s.always("delete", errRefused) }, "final", "gone"},
		{"it was deleted, and the answer is lost", func(s *scene) { s.always("delete", errLost) }, "again", "gone"},
		{"the program was started anew", func(s *scene) { s.backend = s.Backend().(*Backend) }, "gone", "gone"},
		{"the program was started anew, and an ADD counts in it", func(s *scene) {
			s.backend = s.Backend().(*Backend)
			_ = s.count(firstHandle, prefix("10.0.0.0/26"), 1)
		}, "changed", "changed"},
		{"the program was started anew, and it is gone", func(s *scene) {
			s.backend = s.Backend().(*Backend)
			s.remove(handles, firstHandle)
		}, "gone", "gone"},
		{"the program was started anew, and it cannot be read", func(s *scene) {
			s.backend = s.Backend().(*Backend)
			s.always("get", errBroken)
		}, "again", "gone"},
		{"the program was started anew, and reading is forbidden", func(s *scene) {
			s.backend = s.Backend().(*Backend)
			s.always("get", errRefused)
		}, "final", "gone"},
		{"the program was started anew, and it is no handle", func(s *scene) {
			s.backend = s.Backend().(*Backend)
			s.put(handles, firstHandle, `{"block":7}`)
		}, "kept", "kept"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				s := newScene(t, sh)
				ws := s.warrants(s.emptyHandle())
				s.onRequest(nil)
				tt.happen(s)
				if got := words(s.backend.Release(t.Context(), emptyHandles, ws)); got != tt.want {
					t.Errorf("Release = %s, want %s", got, tt.want)
				}
				s.onRequest(nil)
				if got := words(s.backend.Release(t.Context(), emptyHandles, ws)); got != tt.again {
					t.Errorf("the second Release = %s, want %s", got, tt.again)
				}
				if left := s.handle(firstHandle); (left == "") != (tt.again == "gone") {
					t.Errorf("the answer is %s, and left is %q", tt.again, left)
				}
			})
		})
	}
}

func TestEmptyHandleIsNotDeletedTooLate(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, sh)
			ws := s.warrants(s.emptyHandle())
			time.Sleep(reaper.Freshness)
			s.backend = s.Backend().(*Backend) // which has to read it first
			s.before("get", func() { time.Sleep(time.Millisecond) })
			if got := words(s.backend.Release(t.Context(), emptyHandles, ws)); got != "again" || s.handle(firstHandle) == "" {
				t.Errorf("Release = %s, and left is %q, want what is expired to stay", got, s.handle(firstHandle))
			}
			if got := words(s.backend.Release(t.Context(), emptyHandles, ws)); got != "again" {
				t.Errorf("Release = %s, want again", got)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if got := words(s.backend.Release(ctx, emptyHandles, s.warrants(s.emptyHandle()))); got != "again" || s.handle(firstHandle) == "" {
				t.Errorf("Release under a cancelled context = %s, and left is %q", got, s.handle(firstHandle))
			}
		})
	})
}

// Its name is that of another owner's handle.
func TestEmptyHandleOfAnotherSpelling(t *testing.T) {
	s := newScene(t, shapes[0])
	ws := s.warrants(s.emptyHandle())
	s.backend = s.Backend().(*Backend)
	other := `{"handleID":"K8S-pod-network.` + sandbox(1) + `","block":{"10.0.0.0/26":1}}`
	s.put(handles, firstHandle, other)
	if got := words(s.backend.Release(t.Context(), emptyHandles, ws)); got != "gone" || s.handle(firstHandle) != other {
		t.Errorf("Release = %s, and left is %q, want the other's to stay", got, s.handle(firstHandle))
	}
}
