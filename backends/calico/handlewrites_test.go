package calico

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// firstHandle is the handle of the first sandbox of a fixture.
var firstHandle = "k8s-pod-network." + sandbox(1)

// handleJSON is the stored form of firstHandle with these counts.
func handleJSON(sh shape, block string, more ...string) string {
	id := ""
	if sh.name == "kubernetes" {
		id = fmt.Sprintf(`"handleID":%q,`, firstHandle)
	}
	return `{` + id + `"block":` + block + `,"deleted":false` + strings.Join(more, "") + `}`
}

// share stores a block with three addresses of the first sandbox. Its handle counts
// the given number; with 0 there is no handle.
func (s *fixture) share(count int) []ipam.Allocation {
	s.t.Helper()
	attribute := fmt.Sprintf(`{"handle_id":%q,"secondary":{"namespace":"default","pod":"gone-1","node":"node-1"}}`, firstHandle)
	s.put(blocks, "10.0.0.0/30", `{"cidr":"10.0.0.0/30","affinity":"host:node-1","allocations":[0,0,0,null],"unallocated":[3],"attributes":[`+attribute+`],`+
		`"sequenceNumber":9,"sequenceNumberForAllocation":{"0":1,"1":2,"2":3},"deleted":false}`)
	if count > 0 {
		s.put(handles, firstHandle, handleJSON(s.shape, fmt.Sprintf(`{"10.0.0.0/30":%d}`, count), `,"more":1.50`))
	}
	var rs []ipam.Allocation
	for ordinal := range 3 {
		rs = append(rs, ipam.Allocation{Pool: "10.0.0.0/30", Key: fmt.Sprint(ordinal)})
	}
	return rs
}

// A release lowers a handle's count by the released addresses, and never below those that stay.
func TestReleaseLowersHandles(t *testing.T) {
	for _, tt := range []struct {
		count   int // the count before the release
		release []int
		want    int // the count after it
	}{
		{3, []int{1}, 2}, {3, []int{0, 2}, 1}, {3, []int{0, 1, 2}, 0},
		{5, []int{1}, 4}, {5, []int{0, 1, 2}, 2},
		{2, []int{1}, 2}, {1, []int{1}, 1}, {1, []int{0, 2}, 1}, {1, []int{0, 1, 2}, 0},
		{0, []int{1}, 0}, {0, []int{0, 1, 2}, 0}, // there is no handle
	} {
		t.Run(fmt.Sprintf("%d less %d", tt.count, len(tt.release)), func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				s := newFixture(t, sh)
				ws := pick(s.warrants(s.share(tt.count)...), tt.release...)
				if got := outcomes(s.backend.Release(t.Context(), ws)); strings.Trim(got, "gone ") != "" {
					t.Errorf("Release = %s, want all gone", got)
				}
				want := ""
				if tt.want > 0 {
					want = handleJSON(sh, fmt.Sprintf(`{"10.0.0.0/30":%d}`, tt.want), `,"more":1.50`)
				}
				if diff := cmp.Diff(want, s.handle(firstHandle)); diff != "" {
					t.Errorf("the handle (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestHandlesThatReleaseLeavesAlone(t *testing.T) {
	for name, value := range map[string]func(sh shape) string{
		"it counts in other blocks only": func(sh shape) string { return handleJSON(sh, `{"10.0.1.0/26":1}`) },
		"it counts in other blocks only, and in many": func(sh shape) string {
			return handleJSON(sh, `{"10.0.1.0/26":3}`)
		},
		"Calico is deleting it": func(sh shape) string {
			return strings.Replace(handleJSON(sh, `{"10.0.0.0/26":1}`), `"deleted":false`, `"deleted":true`, 1)
		},
		"it counts nothing": func(sh shape) string { return handleJSON(sh, `{}`) },
	} {
		t.Run(name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				for _, listed := range []bool{true, false} {
					s := newFixture(t, sh)
					rs := s.leak(1)
					if listed {
						s.put(handles, firstHandle, value(sh))
					}
					ws := s.warrants(rs...)
					if !listed {
						s.put(handles, firstHandle, value(sh))
						s.backend.known.forget(firstHandle)
					}
					if got := outcomes(s.backend.Release(t.Context(), ws)); got != "gone" {
						t.Errorf("Release = %s, want gone", got)
					}
					if diff := cmp.Diff(value(sh), s.handle(firstHandle)); diff != "" {
						t.Errorf("the handle (-want +got):\n%s", diff)
					}
				}
			})
		})
	}
}

// A release does not undo the count of an ADD of the same owner meanwhile, in
// this block or in another one.
func TestCountsOfOthersAreKept(t *testing.T) {
	for name, cidr := range map[string]string{"another block": "10.0.1.0/26", "the same block": "10.0.0.0/30"} {
		t.Run(name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				for _, release := range [][]int{{0, 1, 2}, {1}} {
					s := newFixture(t, sh)
					ws := pick(s.warrants(s.share(3)...), release...)
					request := map[string]string{"kubernetes": "put handle", "etcd": "put block"}[sh.name]
					if len(release) == 3 && sh.name == "kubernetes" {
						request = "delete handle"
					}
					s.before(request, func() {
						if err := s.count(firstHandle, prefix(cidr), 1); err != nil {
							t.Error(err)
						}
					})
					if got := outcomes(s.backend.Release(t.Context(), ws)); strings.Trim(got, "gone ") != "" {
						t.Errorf("Release = %s, want all gone", got)
					}
					left := 3 - len(release)
					want := handleJSON(sh, fmt.Sprintf(`{%q:%d}`, cidr, left+1))
					if cidr != "10.0.0.0/30" {
						want = handleJSON(sh, fmt.Sprintf(`{"10.0.0.0/30":%d,%q:1}`, left, cidr))
						if left == 0 {
							want = handleJSON(sh, fmt.Sprintf(`{%q:1}`, cidr))
						}
					}
					if diff := cmp.Diff(want, s.handle(firstHandle)); diff != "" {
						t.Errorf("the handle without %v (-want +got):\n%s", release, diff)
					}
				}
			})
		})
	}
}

// The block is written by then, so the answer says only that the handle is left.
func TestHandlesThatCannotBeWritten(t *testing.T) {
	again := func(s *fixture, _ string) {
		s.onRequest(func(request string) error {
			if strings.HasPrefix(request, "delete handle "+firstHandle) {
				return edit(s.fakeStore, handles, firstHandle, func(*calicoHandle) bool { return true })
			}
			return nil
		})
	}
	for _, tt := range []struct {
		name   string
		happen func(s *fixture, request string)
		want   string
	}{
		{"refused", func(s *fixture, request string) { s.always(request, errRefused) }, "unfinished"},
		{"broken once", func(s *fixture, request string) { s.failing(request, func() error { return errBroken }) }, "gone"},
		{"the answer is lost", func(s *fixture, request string) { s.failing(request, func() error { return errLost }) }, "gone"},
		{"broken", func(s *fixture, request string) { s.always(request, errBroken) }, "unfinished"},
		{"written by others once", func(s *fixture, request string) {
			s.before(request, func() { s.replace(handles, firstHandle, `"deleted":false`, `"deleted":false,"x":1`) })
		}, "gone"},
		{"written by others all the time", again, "unfinished"},
		{"gone", func(s *fixture, request string) { s.before(request, func() { s.remove(handles, firstHandle) }) }, "gone"},
		{"broken, and cannot be read then", func(s *fixture, _ string) { s.always("", errBroken) }, "unfinished"},
		{"written by others, and no handle then", func(s *fixture, request string) {
			s.before(request, func() { s.put(handles, firstHandle, `{"handleID":"`+firstHandle+`","block":7}`) })
		}, "unfinished"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFixture(t, shapes[0])
				rs := s.leak(1)
				ws := s.warrants(rs...)
				s.before("put block", func() { tt.happen(s, "delete handle") }) // takes effect from the next request on
				if got := outcomes(s.backend.Release(t.Context(), ws)); got != tt.want {
					t.Errorf("Release = %s, want %s", got, tt.want)
				}
				if n := len(s.requests()); n > 100 {
					t.Errorf("%d requests, want at most 100", n)
				}
				left := s.snapshot()
				if _, held := left[firstBlock+"/0"]; held {
					t.Error("the address is still allocated")
				}
				if _, there := left["handle "+firstHandle]; there != (tt.want == "unfinished") {
					t.Errorf("the answer is %s, and the store has %v", tt.want, left)
				}
			})
		})
	}
}
