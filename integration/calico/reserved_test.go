package calico_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// keep applies an IPReservation.
func (s *fixture) keep(name string, ranges ...string) {
	s.Helper()
	s.must(s.Apply(s.Context(), "IPReservation", map[string]string{"name": name}, map[string]any{"reservedCIDRs": ranges}))
}

// Addresses in the ranges of Calico's own IPReservation are neither released nor put back (promise
// 2).
func TestReservedAddressesStay(t *testing.T) {
	each(t, func(s *fixture) {
		_, kept := s.leak("gone")
		_, gone := s.leak("gone-too")
		s.keep("mine", kept.String())
		b := s.backend()
		records := s.records(b, gone)
		report := s.mustReap(reap.ExitDone, releaseNow)
		s.wantOutcomes(report, map[netip.Addr]string{kept: "kept", gone: "released"})

		s.keep("mine", kept.String(), gone.String())
		for _, err := range b.List(s.Context()) {
			s.must(err)
		}
		pool := s.blockOf(gone).String()
		if err := b.Restore(s.Context(), pool, records[pool])[0]; err == nil || !strings.HasSuffix(err.Error(), "is not put back: Calico's IPReservation mine reserves it") {
			s.Errorf("a restore of a reserved address: %v", err)
		}
		_, err := s.Calicoctl(s.Context(), "", "delete", "ipreservation", "mine")
		s.must(err)
		report = s.mustReap(reap.ExitDone, releaseNow)
		s.wantOutcomes(report, map[netip.Addr]string{kept: "released"})
	})
}
