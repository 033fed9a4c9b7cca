package calico_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
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

// keep applies an IPReservation.
func (s *fixture) keep(name string, ranges ...string) {
	s.Helper()
	s.must(s.Apply(s.Context(), "IPReservation", map[string]string{"name": name}, map[string]any{"reservedCIDRs": ranges}))
}

// What leaked of the ranges of Calico's own IPReservation is released, and put back.
func TestReservedAddressesAreReleasedAndPutBack(t *testing.T) {
	each(t, func(s *fixture) {
		_, gone := s.leak("gone")
		s.keep("mine", gone.String())
		b := s.backend()
		records := s.records(b, gone)
		report := s.mustReap(reap.ExitDone, releaseNow)
		s.wantOutcomes(report, map[netip.Addr]string{gone: "released"})

		for _, err := range b.List(s.Context()) {
			s.must(err)
		}
		pool := s.blockOf(gone).String()
		if err := b.Restore(s.Context(), pool, records[pool], backendtest.Permit)[0]; err != nil {
			s.Errorf("a restore of a reserved address: %v", err)
		}
	})
}

// The plugin records when it gave an address. If that could not be read, a run would release an
// address whose ADD is under way (promise 4). The engine runs as if later than now.
func TestTimesOfThePluginAreRead(t *testing.T) {
	const policy = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ndryRun: false\nlimits: {maxFraction: 1}\ngracePeriod: 0s\n"
	s := newFixture(t, calico.KubernetesT(t))
	_, ip := s.leak("gone")
	for _, tt := range []struct {
		at   time.Duration // 20 seconds before or after the age: a run takes some time
		want string
	}{
		{0, "held TooYoung kept"},
		{5*time.Minute - 20*time.Second, "held TooYoung kept"},
		{5*time.Minute + 20*time.Second, "orphan PodAbsent released"},
	} {
		r, err := s.engine(reap.After(tt.at)).Run(s.Context(), policy)
		s.must(err)
		if got := lines(r)[ip.String()]; got != tt.want {
			s.Fatalf("after %v, the address is %q, want %q", tt.at, got, tt.want)
		}
	}
}
