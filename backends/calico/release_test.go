package calico

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

const firstBlock = "10.0.0.0/26"

// pick returns the elements at the indices.
func pick[T any](all []T, indices ...int) []T {
	var some []T
	for _, i := range indices {
		some = append(some, all[i])
	}
	return some
}

// The block is written once, and before any handle.
func TestReleaseWritesBlocksThenHandles(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		rs := s.leak(3)
		ws := s.warrants(rs...)
		before := s.snapshot()
		s.onRequest(nil)
		if got := outcomes(s.backend.Release(t.Context(), pick(ws, 2, 0))); got != "gone gone" {
			t.Errorf("Release = %s, want both gone", got)
		}
		block, first, second := "put block "+firstBlock, "delete handle k8s-pod-network."+sandbox(1), "delete handle k8s-pod-network."+sandbox(3)
		want := []string{"get block " + firstBlock, block, first, second}
		if sh.name == "etcd" {
			want = []string{"get block " + firstBlock, strings.Join(want[1:], ", ")}
		}
		got := s.requests()
		slices.Sort(got[min(2, len(got)):]) // the handles are written at the same time
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		delete(before, backendtest.Place(rs[0]))
		delete(before, backendtest.Place(rs[2]))
		if diff := cmp.Diff(before, s.snapshot()); diff != "" {
			t.Errorf("the store's content (-want +got):\n%s", diff)
		}
		if o, _ := s.look(blocks, firstBlock); !strings.Contains(string(o.raw), ",63,0,2]") {
			t.Errorf("the released ordinals are not at the tail, in order: %s", o.raw)
		}
	})
}

func TestReleaseGivesUpAfterManyConflicts(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		ws := s.warrants(s.leak(2)...)
		before := s.snapshot()
		s.onRequest(func(request string) error {
			if strings.HasPrefix(request, "put block") {
				s.touch(blocks, firstBlock)
			}
			return nil
		})
		if got := outcomes(s.backend.Release(t.Context(), ws)); got != "again again" {
			t.Errorf("Release = %s, want again", got)
		}
		if n := len(s.requests()); n < 10 || n > 200 {
			t.Errorf("%d requests, want 10 to 200", n)
		}
		if diff := cmp.Diff(before, s.snapshot()); diff != "" {
			t.Errorf("the store's content (-want +got):\n%s", diff)
		}
	})
}

func TestReleaseAnswers(t *testing.T) {
	broken := func(request string, err error) func(s *fixture) {
		return func(s *fixture) { s.always(request, err) }
	}
	replaced := func(old, with string) func(s *fixture) {
		return func(s *fixture) { s.replace(blocks, firstBlock, old, with) }
	}
	for _, tt := range []struct {
		name   string
		happen func(s *fixture) // after the warrant was made
		want   string
		again  string // the answer to a second release without faults
	}{
		{"nothing", func(*fixture) {}, "gone", "gone"},
		{"the plugin freed it", func(s *fixture) { _ = s.Free("a", ipam.Owner{Sandbox: sandbox(1)}) }, "gone", "gone"},
		{"Calico deleted the block", func(s *fixture) { s.remove(blocks, firstBlock) }, "gone", "gone"},
		{"Calico deletes the block before it is written", func(s *fixture) { s.before("put block", func() { s.remove(blocks, firstBlock) }) }, "gone", "gone"},
		{"Calico is deleting the block", replaced(`"deleted":false`, `"deleted":true`), "kept", "kept"},
		{"the block is broken", replaced(`"unallocated":[`, `"unallocated":[0,`), "kept", "kept"},
		{"the block has a key twice", replaced(`"affinity":`, `"unallocated":[0],"affinity":`), "kept", "kept"},
		{"another sequence number", replaced(`"sequenceNumberForAllocation":{"0":18`, `"sequenceNumberForAllocation":{"0":19`), "changed", "changed"},
		{"another pod", replaced(`"pod":"gone-1"`, `"pod":"gone-11"`), "changed", "changed"},
		{"it rests", replaced(`"handle_id":`, `"releasedAt":"2026-03-01T12:00:00Z","handle_id":`), "changed", "changed"},
		{"the block cannot be read", broken("get block", errBroken), "again", "gone"},
		{"reading is forbidden", broken("get block", errRefused), "final", "gone"},
		{"the block cannot be written", broken("put block", errBroken), "again", "gone"},
		{"writing is forbidden", broken("put block", errRefused), "final", "gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				s := newFixture(t, sh)
				ws := s.warrants(s.leak(1)...)
				s.onRequest(nil)
				tt.happen(s)
				before := s.snapshot()
				if got := outcomes(s.backend.Release(t.Context(), ws)); got != tt.want {
					t.Errorf("Release = %s, want %s", got, tt.want)
				}
				if gone := tt.want == "gone"; !gone && !maps.Equal(before, s.snapshot()) {
					t.Errorf("the store's content is\n%v\nand was\n%v", s.snapshot(), before)
				}
				s.onRequest(nil)
				if got := outcomes(s.backend.Release(t.Context(), ws)); got != tt.again {
					t.Errorf("the second Release = %s, want %s", got, tt.again)
				}
				if _, held := s.snapshot()[firstBlock+"/0"]; held == (tt.again == "gone") {
					t.Errorf("the address is allocated: %v", held)
				}
			})
		})
	}
}

// If the answer to the write of a block is lost, the next try finds that its addresses are free.
// Handles that were not in the same write are left to a later run.
func TestReleaseWhoseAnswerIsLost(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		ws := s.warrants(s.leak(2)...)
		s.failing("put block", func() error { return errLost })
		if errs := s.backend.Release(t.Context(), ws); outcomes(errs) != "again again" || !errors.Is(errs[0], ipam.ErrLost) {
			t.Errorf("Release = %v, want again, and that the answer was lost", errs)
		}
		if got := outcomes(s.backend.Release(t.Context(), ws)); got != "gone gone" {
			t.Errorf("the second Release = %s, want both gone", got)
		}
		for place, r := range s.listed() {
			if sh.name == "etcd" || !r.EmptyHandle {
				t.Errorf("the store still has %s", place)
			}
		}
	})
}

func TestKeysThatAreNoOrdinals(t *testing.T) {
	b := mustRead(t, shapes[0].stored(blocks, "10.0.0.0/30", threeOfFour))
	for _, key := range []string{"", "x", "-1", "4", "1.0", "18446744073709551616"} {
		if ordinal, err := b.find(ipam.Allocation{Key: key, Token: b.token(0)}); !errors.Is(err, ipam.ErrKept) {
			t.Errorf("key %q is ordinal %d, %v, want ErrKept", key, ordinal, err)
		}
	}
	b = mustRead(t, shapes[1].stored(blocks, "10.0.0.0/32", `{"cidr":"10.0.0.0/32","allocations":[0],"unallocated":[],"attributes":[{}]}`))
	if ordinal, err := b.find(ipam.Allocation{Key: "0"}); !errors.Is(err, ipam.ErrChanged) {
		t.Errorf("without a token key 0 is ordinal %d, %v", ordinal, err)
	}
}
