package calico

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

func TestWarrantsExpireBetweenReadingAndWriting(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		for wait, want := range map[time.Duration]string{
			time.Second:                    "gone gone gone",
			time.Second + time.Millisecond: "again again gone",
		} {
			synctest.Test(t, func(t *testing.T) {
				s := newFixture(t, sh)
				rs := s.leak(3)
				ws := s.warrants(rs[0], rs[1])
				time.Sleep(ipam.FreshnessNeverAdopted - time.Second)
				ws = append(ws, s.warrants(rs[2])...)
				left := s.snapshot()
				s.before("get block", func() { time.Sleep(wait) })
				got := outcomes(s.backend.Release(t.Context(), ws))
				if got != want {
					t.Errorf("Release after %v = %s, want %s", wait, got, want)
				}
				for i, word := range strings.Fields(want) {
					if word == "gone" {
						delete(left, backendtest.Place(rs[i]))
					}
				}
				if diff := cmp.Diff(left, s.snapshot()); diff != "" {
					t.Errorf("after %v the store's content (-want +got):\n%s", wait, diff)
				}
			})
		}
	})
}

// An interrupted release writes the handles of a block that it has written. It
// writes no further block.
func TestReleaseIsInterrupted(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		for request, want := range map[string]string{"get block": "again again", "put block": "again again", "delete handle": "gone gone"} {
			s := newFixture(t, sh)
			ws := s.warrants(s.leak(2)...)
			before := s.snapshot()
			ctx, cancel := context.WithCancel(t.Context())
			s.before(request, cancel)
			got := outcomes(s.backend.Release(ctx, ws))
			if got != want {
				t.Errorf("interrupted at %q: Release = %s, want %s", request, got, want)
			}
			if want != "gone gone" {
				if diff := cmp.Diff(before, s.snapshot()); diff != "" {
					t.Errorf("interrupted at %q: the store's content (-want +got):\n%s", request, diff)
				}
			} else if left := s.snapshot(); len(left) != 1 {
				t.Errorf("interrupted at %q: the store has %v, want the block only", request, left)
			}
			cancel()
		}
	})
}
