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
	const block = `{"10.0.0.0/30":N}`
	for _, tt := range []struct {
		before  string // the handle's counts before the release, of N addresses; empty: there is no handle
		n       int
		release []int
		after   int // the count after it
		deleted bool
	}{
		{block, 3, []int{1}, 2, false}, {block, 3, []int{0, 2}, 1, false}, {block, 3, []int{0, 1, 2}, 0, false},
		{block, 5, []int{1}, 4, false}, {block, 5, []int{0, 1, 2}, 2, false},
		{block, 2, []int{1}, 2, false}, {block, 1, []int{1}, 1, false}, {block, 1, []int{0, 2}, 1, false}, {block, 1, []int{0, 1, 2}, 0, false},
		{"", 0, []int{1}, 0, false}, {"", 0, []int{0, 1, 2}, 0, false},
		{`{"10.0.1.0/26":N}`, 1, []int{0, 1, 2}, 1, false}, // in another block only
		{`{}`, 1, []int{1}, 1, false},
		{block, 3, []int{1}, 3, true}, // Calico is deleting it
	} {
		t.Run(fmt.Sprintf("%s of %d less %d", tt.before, tt.n, len(tt.release)), func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				s := newFixture(t, sh)
				stored := func(n int) string {
					if n == 0 {
						return ""
					}
					text := handleJSON(sh, strings.ReplaceAll(tt.before, "N", fmt.Sprint(n)), `,"more":1.50`)
					return strings.Replace(text, `"deleted":false`, fmt.Sprintf(`"deleted":%v`, tt.deleted), 1)
				}
				rs := s.share(0)
				if tt.n > 0 {
					s.put(handles, firstHandle, stored(tt.n))
				}
				ws := pick(s.warrants(rs...), tt.release...)
				if got := outcomes(s.backend.Release(t.Context(), ws)); strings.Trim(got, "gone ") != "" {
					t.Errorf("Release = %s, want all gone", got)
				}
				if diff := cmp.Diff(stored(tt.after), s.handle(firstHandle)); diff != "" {
					t.Errorf("the handle (-want +got):\n%s", diff)
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
				s.touch(handles, firstHandle)
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
		{"finalizers keep it", func(s *fixture, request string) { s.always(request, ipam.Deleting([]string{"example.com/hold"})) }, "unfinished+deleting"},
		{"written by others once", func(s *fixture, request string) {
			s.before(request, func() { s.replace(handles, firstHandle, `"deleted":false`, `"deleted":false,"x":1`) })
		}, "gone"},
		{"written by others all the time", again, "unfinished"},
		{"gone", func(s *fixture, request string) { s.before(request, func() { s.remove(handles, firstHandle) }) }, "gone"},
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
				if _, there := left["handle "+firstHandle]; there != strings.HasPrefix(tt.want, "unfinished") {
					t.Errorf("the answer is %s, and the store has %v", tt.want, left)
				}
			})
		})
	}
}

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

// A handle that cannot be edited is not rewritten. If the run knows that before it writes the
// block, the address is kept.
func TestHandlesThatCannotBeDecoded(t *testing.T) {
	for name, tt := range map[string]struct {
		value, want string
		since       bool // the run recorded another one
	}{
		"the blocks twice":                   {`{"handleID":"ID","block":{"10.0.0.0/30":3},"block":{"10.0.0.0/30":3},"more":1}`, "kept", false},
		"no handle since the listing":        {`{"handleID":"ID","block":7}`, "unfinished", true},
		"the blocks twice since the listing": {`{"handleID":"ID","block":{"10.0.0.0/30":3},"block":{"10.0.0.0/30":3}}`, "unfinished", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, shapes[0])
			rs := s.share(3)
			value := strings.Replace(tt.value, `"ID"`, `"`+firstHandle+`"`, 1)
			if !tt.since {
				s.put(handles, firstHandle, value)
			}
			ws := s.warrants(rs...)
			s.put(handles, firstHandle, value)
			before, _ := s.look(blocks, "10.0.0.0/30")
			if got := outcomes(s.backend.Release(t.Context(), pick(ws, 1))); got != tt.want {
				t.Errorf("Release = %s, want %s", got, tt.want)
			}
			after, _ := s.look(blocks, "10.0.0.0/30")
			if same := string(before.raw) == string(after.raw); same != (tt.want == "kept") {
				t.Errorf("the block is unchanged: %v", same)
			}
			if diff := cmp.Diff(value, s.handle(firstHandle)); diff != "" {
				t.Errorf("the handle (-want +got):\n%s", diff)
			}
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
