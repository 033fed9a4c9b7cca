package calico

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An address would leak if its handle did not count it.
func TestHandlesCountWhatStays(t *testing.T) {
	for _, tt := range []struct {
		name    string
		count   int
		release []int // the ordinals to release, of three
		happen  func(s *fixture, request string)
		want    int
	}{
		{"the answer is lost", 3, []int{1}, func(s *fixture, request string) { s.failing(request, func() error { return errLost }) }, 2},
		{"the answer is lost, and it counted too many", 4, []int{1}, func(s *fixture, request string) { s.failing(request, func() error { return errLost }) }, 2},
		{"written by others", 3, []int{1}, func(s *fixture, request string) {
			s.before(request, func() { s.replace(handles, firstHandle, `"deleted"`, `"x":1,"deleted"`) })
		}, 2},
		{"written by others, who count too few", 3, []int{1}, func(s *fixture, request string) {
			s.before(request, func() { s.replace(handles, firstHandle, `"10.0.0.0/30":3`, `"10.0.0.0/30":1`) })
		}, 1},
		{"written by others, who count too many", 3, []int{1}, func(s *fixture, request string) {
			s.before(request, func() { s.replace(handles, firstHandle, `"10.0.0.0/30":3`, `"10.0.0.0/30":7`) })
		}, 6},
		{"written by others, who count all but one", 3, []int{0, 2}, func(s *fixture, request string) {
			s.before(request, func() { s.replace(handles, firstHandle, `"10.0.0.0/30":3`, `"10.0.0.0/30":2`) })
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t, shapes[0])
			ws := s.warrants(s.share(tt.count)...)
			tt.happen(s, "put handle")
			if got := outcomes(s.backend.Release(t.Context(), pick(ws, tt.release...))); strings.Trim(got, "gone ") != "" {
				t.Errorf("Release = %s, want all gone", got)
			}
			if got, want := s.handle(firstHandle), fmt.Sprintf(`"10.0.0.0/30":%d`, tt.want); !strings.Contains(got, want) {
				t.Errorf("the handle is %s, want %s in it", got, want)
			}
		})
	}
}

// A handle that cannot be decoded is not rewritten. If its block would have to be
// written first, the block is not written either.
func TestHandlesThatCannotBeDecoded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		value string
		known bool // the handle is so when it is listed
		want  map[string]string
	}{
		{"the blocks twice", `{"handleID":"ID","block":{"10.0.0.0/30":3},"block":{"10.0.0.0/30":3},"more":1}`, true,
			map[string]string{"kubernetes": "kept", "etcd": "kept"}},
		{"no handle since the listing", `{"handleID":"ID","block":7}`, false,
			map[string]string{"kubernetes": "unfinished", "etcd": "unfinished"}},
		{"the blocks twice since the listing", `{"handleID":"ID","block":{"10.0.0.0/30":3},"block":{"10.0.0.0/30":3}}`, false,
			map[string]string{"kubernetes": "unfinished", "etcd": "unfinished"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				s := newFixture(t, sh)
				rs := s.share(3)
				value := strings.Replace(tt.value, `"ID"`, `"`+firstHandle+`"`, 1)
				if tt.known {
					s.put(handles, firstHandle, value)
				}
				ws := s.warrants(rs...)
				if !tt.known {
					s.put(handles, firstHandle, value)
					s.backend.known.forget(firstHandle)
				}
				before, _ := s.look(blocks, "10.0.0.0/30")
				got := outcomes(s.backend.Release(t.Context(), pick(ws, 1)))
				if got != tt.want[sh.name] {
					t.Errorf("Release = %s, want %s", got, tt.want[sh.name])
				}
				after, _ := s.look(blocks, "10.0.0.0/30")
				if same := string(before.raw) == string(after.raw); same != (got == "kept") {
					t.Errorf("the answer is %s, and the block is unchanged: %v", got, same)
				}
				if diff := cmp.Diff(value, s.handle(firstHandle)); diff != "" {
					t.Errorf("the handle (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Resource names have no capitals, so the handles of two owners can have the same
// name.
func TestHandlesWhoseIDDiffersInCaseAreNotTouched(t *testing.T) {
	s := newFixture(t, shapes[0])
	rs := s.share(0)
	other := `{"handleID":"K8S-pod-network.` + sandbox(1) + `","block":{"10.0.0.0/30":3}}`
	s.put(handles, firstHandle, other)
	ws := s.warrants(rs...)
	if got := outcomes(s.backend.Release(t.Context(), ws)); got != "gone gone gone" {
		t.Errorf("Release = %s, want all gone", got)
	}
	if diff := cmp.Diff(other, s.handle(firstHandle)); diff != "" {
		t.Errorf("the other owner's handle (-want +got):\n%s", diff)
	}
}
