package calico_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A dry run says what a run would do and writes nothing (promise 5). The run then
// releases the address of the pod that is gone and no other (promise 1).
func TestAddressOfAnAbsentPodIsReleasedAndThatOfALivePodStays(t *testing.T) {
	each(t, func(s *fixture) {
		gone, leaked := s.leak("gone")
		_, kept := s.live("web")
		want := map[string]string{
			leaked.String(): "orphan PodAbsent planned",
			kept.String():   "inUse PodPresent kept",
		}
		before, versions := s.state(), s.versions()
		if diff := cmp.Diff(want, lines(s.mustReap(reap.ExitDone, releaseNow, "--dry-run=true"))); diff != "" {
			s.Errorf("report of the dry run (-want +got):\n%s", diff)
		}
		s.wantSame(before)
		if diff := cmp.Diff(versions, s.versions()); diff != "" {
			s.Errorf("versions in the cluster (-before +after):\n%s", diff)
		}

		want[leaked.String()] = "orphan PodAbsent released"
		if diff := cmp.Diff(want, lines(s.mustReap(reap.ExitDone, releaseNow))); diff != "" {
			s.Errorf("report (-want +got):\n%s", diff)
		}
		s.clean()
		s.must(s.Del(s.Context(), gone))
		s.clean()
	})
}
