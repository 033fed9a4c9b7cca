package calico_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// backendOf returns what a report says about Calico as a whole.
func backendOf(r *reap.Report) reap.Backend {
	for _, b := range r.Backends {
		if b.Name == "calico" {
			return b
		}
	}
	return reap.Backend{}
}

// Tools lock the datastore while they move it (22).
func TestLockedDatastoreIsLeftAlone(t *testing.T) {
	each(t, func(s *fixture) {
		_, ip := s.leak("gone")
		fails := func(why string) {
			s.Helper()
			before, ledgers := s.state(), s.versions()
			r := s.mustReap(reap.ExitPartial, releaseNow)
			if b := backendOf(r); b.Status != "failed" || !strings.Contains(b.Message, why) || len(r.Entries) > 0 {
				s.Errorf("the backend is %s: %q, with %v; want it to have failed: %q", b.Status, b.Message, r.Entries, why)
			}
			s.wantSame(before)
			if diff := cmp.Diff(ledgers, s.versions()); diff != "" {
				s.Errorf("versions in the cluster (-before +after):\n%s", diff)
			}
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

// versions returns the versions of everything in the cluster except what runs write for themselves.
func (s *fixture) versions() map[string]string {
	s.Helper()
	versions, err := s.Cluster.Versions(s.Context())
	s.must(err)
	return reap.StoreObjects(versions)
}
