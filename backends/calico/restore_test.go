package calico

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Restore notices other writes between its read and its write of a block. Otherwise, it would give
// an address to two pods. The integration test TestRestoreLosesAgainstAnADD has the ADDs.
func TestRestoreWhileOthersWrite(t *testing.T) {
	for name, tt := range map[string]struct {
		happen func(s *fixture, r ipam.Record)
		want   string
		says   string
	}{
		"another one that restores": {func(s *fixture, r ipam.Record) {
			other := s.fakeStore.backend()
			if got := restoreOutcomes(other.Restore(s.t.Context(), firstBlock, []ipam.Record{r}, backendtest.Permit)); got != "back" {
				s.t.Errorf("the other Restore = %s", got)
			}
		}, "present", ""},
		"the block is gone": {func(s *fixture, _ ipam.Record) { s.remove(blocks, firstBlock) }, "taken", "does not exist any more"},
		"the block is being deleted": {func(s *fixture, _ ipam.Record) {
			s.replace(blocks, firstBlock, `"deleted":false`, `"deleted":true`)
		}, "taken", "Calico is deleting the block"},
		"the block was broken": {func(s *fixture, _ ipam.Record) {
			s.replace(blocks, firstBlock, `"unallocated":[`, `"unallocated":[7,`)
		}, "final", "cannot be written"},
		"the block has a key twice": {func(s *fixture, _ ipam.Record) {
			s.replace(blocks, firstBlock, `"affinity":`, `"unallocated":[0],"affinity":`)
		}, "final", "cannot be edited"},
	} {
		t.Run(name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				s := newFixture(t, sh)
				record := s.lose(1)[0]
				s.before("put block", func() {
					s.onRequest(nil)
					tt.happen(s, record)
				})
				errs := s.backend.Restore(t.Context(), firstBlock, []ipam.Record{record}, backendtest.Permit)
				if got := restoreOutcomes(errs); got != tt.want || !strings.Contains(fmt.Sprint(errs), tt.says) {
					t.Errorf("Restore = %v, want %s: %s", errs, tt.want, tt.says)
				}
			})
		})
	}
}

// A restore that ends early may leave a handle that counts an address that the block does not
// have. It never leaves an address without a handle. The next Restore completes both (promise 8).
func TestRestoreWithFailingRequests(t *testing.T) {
	for _, tt := range []struct {
		request string
		err     error
		want    string
	}{
		{"ready", errNotReady, "final"},
		{"get block", errBroken, "again"}, {"get block", errRefused, "final"},
		{"get handle", errBroken, "again"}, {"get handle", errRefused, "final"},
		{"create handle", errBroken, "again"}, {"create handle", errRefused, "final"}, {"create handle", errLost, "again"},
		{"put block", errBroken, "again"}, {"put block", errRefused, "final"}, {"put block", errLost, "lost"},
	} {
		t.Run(fmt.Sprint(tt.request, " ", tt.err), func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				s := newFixture(t, sh)
				rs := s.leak(1)
				before := s.contents()
				record := s.records(slices.Clone(rs)...)[0]
				if err := s.Free("a", rs[0].Owner); err != nil {
					t.Fatal(err)
				}
				s.failing(tt.request, func() error { return tt.err })
				want := tt.want
				if want == "lost" {
					want = "again"
				}
				if got := s.restore(record); got != want {
					t.Errorf("Restore = %s, want %s", got, tt.want)
				}
				s.onRequest(nil)
				for _, r := range s.listed() {
					if !r.EmptyHandle && tt.want != "lost" {
						t.Errorf("%s is back", r.IP)
					}
				}
				if got := s.restore(record); got != map[string]string{"lost": "present", "final": "back", "again": "back"}[tt.want] {
					t.Errorf("the next Restore = %s", got)
				}
				if diff := cmp.Diff(before, s.contents()); diff != "" {
					t.Errorf("stored (-before +after):\n%s", diff)
				}
			})
		})
	}
}

// In etcd, a transaction has room for 127 handles besides the block. More are
// written after it.
func TestReleaseAndRestoreOfManyHandles(t *testing.T) {
	for _, n := range []int{127, 128} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			s := newFixture(t, shapes[1])
			cidr := prefix("10.9.0.0/24")
			var owners []ipam.Owner
			var rs []ipam.Allocation
			for range n {
				owners = append(owners, s.owner())
				r, err := s.add(cidr, owners[len(owners)-1])
				if err != nil {
					t.Fatal(err)
				}
				rs = append(rs, r)
			}
			before := s.snapshot()
			records := s.records(slices.Clone(rs)...)
			if got := outcomes(s.backend.Release(t.Context(), s.warrants(rs...))); strings.Trim(got, "gone ") != "" {
				t.Fatalf("Release = %s", got)
			}
			if got := restoreOutcomes(s.backend.Restore(t.Context(), cidr.String(), records, backendtest.Permit)); strings.Trim(got, "back ") != "" {
				t.Errorf("Restore = %s", got)
			}
			if diff := cmp.Diff(before, s.snapshot()); diff != "" {
				t.Errorf("stored (-before +after):\n%s", diff)
			}
		})
	}
}

// After Restore, a handle counts the addresses that the block has, or more if it
// counted more before. A handle that was not recorded is not created.
func TestRestoreCountsInTheHandle(t *testing.T) {
	for _, tt := range []struct {
		now  string // the handle's counts before Restore
		want string
	}{
		{"", `{"10.0.0.0/30":3}`},
		{`{"10.0.0.0/30":1}`, `{"10.0.0.0/30":3}`},
		{`{"10.0.0.0/30":3}`, `{"10.0.0.0/30":3}`},
		{`{"10.0.0.0/30":5}`, `{"10.0.0.0/30":5}`},
		{`{"10.1.0.0/26":2}`, `{"10.1.0.0/26":2,"10.0.0.0/30":3}`},
	} {
		t.Run(tt.now, func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				for _, had := range []int{3, 0} { // the recorded count; 0: no handle
					s := newFixture(t, sh)
					rs := s.share(had)
					records := s.records(slices.Clone(rs)...)
					now, _ := s.look(blocks, "10.0.0.0/30")
					whole := mustRead(t, sh.stored(blocks, "10.0.0.0/30", string(now.value())))
					free, err := whole.release([]int{0, 1, 2})
					if err != nil {
						t.Fatal(err)
					}
					s.put(blocks, "10.0.0.0/30", string(free.value()))
					s.remove(handles, firstHandle)
					if tt.now != "" {
						s.put(handles, firstHandle, handleJSON(sh, tt.now, `,"more":1.50`))
					}
					if got := restoreOutcomes(s.backend.Restore(t.Context(), "10.0.0.0/30", records, backendtest.Permit)); got != "back back back" {
						t.Errorf("Restore = %s", got)
					}
					want := handleJSON(sh, tt.want, `,"more":1.50`)
					if tt.now == "" && had == 0 {
						want = ""
					}
					if diff := cmp.Diff(want, s.handle(firstHandle)); diff != "" {
						t.Errorf("the handle (-want +got):\n%s", diff)
					}
				}
			})
		})
	}
}
