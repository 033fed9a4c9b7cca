package calico_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Tools lock the datastore while they move it (22).
func TestLockedDatastoreIsLeftAlone(t *testing.T) {
	each(t, func(s *fixture) {
		_, ip := s.leak("gone")
		fails := func(why string) {
			s.Helper()
			before := s.state()
			r := s.mustReap(reap.ExitPartial, releaseNow)
			i := slices.IndexFunc(r.Backends, func(b reap.Backend) bool { return b.Name == "calico" })
			if b := r.Backends[i]; b.Status != "failed" || !strings.Contains(b.Message, why) || len(r.Entries) > 0 {
				s.Errorf("the backend is %s: %q, with %v; want it to have failed: %q", b.Status, b.Message, r.Entries, why)
			}
			s.wantSame(before)
		}
		s.must(s.Lock(s.Context()))
		fails("datastoreReady is false")
		s.must(s.Unlock(s.Context()))
		r := s.mustReap(reap.ExitDone, releaseNow)
		if got := lines(r)[ip.String()]; got != "orphan PodAbsent released" {
			s.Errorf("after the lock: %q", got)
		}
		// Without the object, the state is unknown.
		s.leak("gone")
		name := map[bool]string{
			false: "default", true: "/calico/resources/v3/projectcalico.org/clusterinformations/default",
		}[s.Etcd != nil]
		s.must(s.Delete(s.Context(), "clusterinformations", name))
		fails("clusterinformation")
	})
}
