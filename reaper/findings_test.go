package reaper_test

import (
	"context"
	"errors"
	"iter"
	"net/netip"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A laterStore has one pool at the first listing, and another one at each later one.
type laterStore struct {
	surveyor
	lists *[][]ipam.Pool
}

func (s laterStore) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		pools := (*s.lists)[0]
		if len(*s.lists) > 1 {
			*s.lists = (*s.lists)[1:]
		}
		if pools == nil {
			yield(ipam.Pool{}, errors.New("no list"))
			return
		}
		for _, pool := range pools {
			if !yield(pool, nil) {
				return
			}
		}
	}
}

// A finding is told if it is still so when the store is listed again, and its pods are read by name.
func TestFindingsAreLookedAtAgain(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.2")
	without := overlapping()[:1]
	without[0].Allocations = without[0].Allocations[:1]
	withIt := overlapping()[:1]
	onNet := func(ref ipam.PodRef, ip netip.Addr) census.Pod {
		pod := showing(ref, ip)
		pod.ByCalico, pod.InStatus, pod.UID = 1, 1, ref.Name
		return pod
	}
	nothing := func(string) error { return nil }
	for _, tt := range []struct {
		name  string
		lists [][]ipam.Pool
		pods  []census.Pod
		call  func(string) error
		want  []report.FindingKind
	}{
		{"the store does not have it", [][]ipam.Pool{without}, []census.Pod{onNet(other, ip)}, nothing, []report.FindingKind{report.Unrecorded}},
		{"the store has it by now", [][]ipam.Pool{without, withIt}, []census.Pod{onNet(other, ip)}, nothing, nil},
		{"the store cannot be listed again", [][]ipam.Pool{without, nil}, []census.Pod{onNet(other, ip)}, nothing, nil},
		{"two pods show it", [][]ipam.Pool{withIt}, []census.Pod{onNet(other, ip1)}, nothing, []report.FindingKind{report.Duplicate}},
		{"two pods show it, and cannot be read", [][]ipam.Pool{withIt}, []census.Pod{onNet(other, ip1)}, func(call string) error {
			if call != "get pod "+other.String() {
				return nil
			}
			return errors.New("no read")
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lists := tt.lists
			h := newHarness(laterStore{surveyor{fixedStore(overlapping()), []ipam.Network{{
				Name: "net", Range: netip.MustParsePrefix("10.0.0.0/28"), Known: true, Default: true,
				Usable: spansOf("10.0.0.0", "10.0.0.15"), Pools: []string{"small"},
			}}, nil}, &lists})
			h.policy.DryRun = new(true)
			h.pods.Add(onNet(web, ip1))
			h.pods.Add(tt.pods...)
			h.pods.OnCall(tt.call)
			r := h.run(t)
			var got []report.FindingKind
			for _, f := range r.Findings {
				got = append(got, f.Kind)
			}
			equal(t, "findings", got, tt.want)
			unread := strings.Contains(strings.Join(r.Warnings, "\n"), "they could not be read again to tell of it: "+other.String()+": no read")
			equal(t, "says that a pod could not be read", unread, strings.Contains(tt.name, "cannot be read"))
			equal(t, "warnings", len(r.Warnings) > 0, len(tt.want) > 0 || unread)
			if len(got) == 1 {
				equal(t, "unrecorded in the network", r.Networks[0].Unrecorded == 1, got[0] == report.Unrecorded)
			}
		})
	}
}
