package calico_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// keep applies an IPReservation.
func (s *fixture) keep(name string, ranges ...string) {
	s.Helper()
	_, err := s.Calicoctl(s.Context(), fmt.Sprintf(
		"apiVersion: projectcalico.org/v3\nkind: IPReservation\nmetadata: {name: %s}\nspec: {reservedCIDRs: [%q]}\n", name, ranges[0]), "apply", "-f", "-")
	s.must(err)
}

// What an IPReservation of Calico's own has in its ranges is not released, and
// nothing is where one cannot be understood (promise 2).
func TestReservedAddressesStay(t *testing.T) {
	each(t, func(s *fixture) {
		_, kept := s.leak("gone")
		_, gone := s.leak("gone-too")
		s.keep("mine", kept.String())
		report := s.mustReap(reap.ExitDone, releaseNow)
		s.wantOutcomes(report, map[netip.Addr]string{kept: "kept", gone: "released"})

		_, other := s.leak("gone-again")
		name := map[bool]string{false: "mine", true: "/calico/resources/v3/projectcalico.org/ipreservations/mine"}[s.Etcd != nil]
		edit := func(ranges ...any) {
			s.must(s.Edit(s.Context(), "ipreservations", name, func(r map[string]any) {
				if s.Etcd != nil {
					r = r["spec"].(map[string]any)
				}
				r["reservedCIDRs"] = ranges
			}))
		}
		edit("10.30.0.0/24", "nonsense")
		before := s.state()
		report = s.mustReap(reap.ExitPartial, releaseNow)
		if b := backendOf(report); b.Status != "failed" || len(report.Entries) > 0 {
			s.Errorf("the backend is %s with %d entries, want it to have failed", b.Status, len(report.Entries))
		}
		s.wantSame(before)

		s.must(s.Delete(s.Context(), calico.Kind("ipreservations"), name))
		report = s.mustReap(reap.ExitDone, releaseNow)
		s.wantOutcomes(report, map[netip.Addr]string{kept: "released", other: "released"})
	})
}
