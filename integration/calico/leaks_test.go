package calico_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

func TestAddressOfAnAbsentPodIsReleasedAndThatOfALivePodStays(t *testing.T) {
	each(t, func(s *fixture) {
		gone, leaked := s.leak("gone")
		_, kept := s.live("web")
		report := s.mustReap(reap.ExitDone, releaseNow)
		want := map[string]string{
			leaked.String(): "orphan PodAbsent released",
			kept.String():   "inUse PodPresent kept",
		}
		if diff := cmp.Diff(want, reasons(report)); diff != "" {
			s.Errorf("report (-want +got):\n%s", diff)
		}
		s.clean()
		s.must(s.Del(s.Context(), gone))
		s.clean()
	})
}

func TestDryRunWritesNothing(t *testing.T) {
	each(t, func(s *fixture) {
		_, ip := s.leak("gone")
		before, versions := s.state(), s.versions()
		r := s.mustReap(reap.ExitDone, releaseNow, "--dry-run=true")
		if diff := cmp.Diff(map[string]string{ip.String(): "orphan PodAbsent planned"}, lines(r)); diff != "" {
			s.Errorf("report (-want +got):\n%s", diff)
		}
		s.wantSame(before)
		if diff := cmp.Diff(versions, s.versions()); diff != "" {
			s.Errorf("versions in the cluster (-before +after):\n%s", diff)
		}
	})
}
