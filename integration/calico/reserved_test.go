package calico_test

import (
	"fmt"
	"net/netip"
	"strings"
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

// Addresses in the ranges of Calico's own IPReservation are neither released nor put back, even if a
// part of it cannot be understood. If it covers everything, the run says so (promises 2, 7).
func TestReservedAddressesStay(t *testing.T) {
	each(t, func(s *fixture) {
		_, kept := s.leak("gone")
		_, gone := s.leak("gone-too")
		s.keep("mine", kept.String())
		b := s.backend()
		records := s.records(b, gone)
		report := s.mustReap(reap.ExitDone, releaseNow)
		s.wantOutcomes(report, map[netip.Addr]string{kept: "kept", gone: "released"})

		name := map[bool]string{false: "mine", true: "/calico/resources/v3/projectcalico.org/ipreservations/mine"}[s.Etcd != nil]
		edit := func(ranges ...any) {
			s.must(s.Edit(s.Context(), "ipreservations", name, func(r map[string]any) {
				if s.Etcd != nil {
					r = r["spec"].(map[string]any)
				}
				r["reservedCIDRs"] = ranges
			}))
		}
		edit(kept.String(), gone.String())
		for _, err := range b.List(s.Context()) {
			s.must(err)
		}
		pool := s.blockOf(gone).String()
		if err := b.Restore(s.Context(), pool, records[pool])[0]; err == nil || !strings.HasSuffix(err.Error(), "is not put back: Calico's IPReservation mine reserves it") {
			s.Errorf("a restore of a reserved address: %v", err)
		}
		_, other := s.leak("gone-again")
		edit("nonsense", kept.String())
		report = s.mustReap(reap.ExitDone, releaseNow)
		s.wantOutcomes(report, map[netip.Addr]string{kept: "kept", other: "released"})
		listed := backendOf(report)
		for _, texts := range [][]string{listed.Undecoded, report.Warnings} {
			if listed.Status != "ok" || len(texts) != 1 || !strings.HasPrefix(texts[0], `Calico's IPReservation mine: reservedCIDRs: "nonsense" is neither an address nor a CIDR`) {
				s.Errorf("the backend is %s, and the report says %q, want it to name the IPReservation", listed.Status, texts)
			}
		}

		edit(kept.String())
		_, other = s.leak("gone-once-more")
		edit("0.0.0.0/0")
		before := s.state()
		report = s.mustReap(reap.ExitDone, releaseNow)
		s.wantSame(before)
		s.wantOutcomes(report, map[netip.Addr]string{kept: "kept", other: "kept"})
		if len(report.Warnings) != 1 || !strings.HasPrefix(report.Warnings[0], "nothing is released from calico ") ||
			!strings.HasSuffix(report.Warnings[0], ", because every address is protected: Calico's IPReservation mine") {
			s.Errorf("warnings %q, want one that names the IPReservation", report.Warnings)
		}

		s.must(s.Delete(s.Context(), calico.Kind("ipreservations"), name))
		report = s.mustReap(reap.ExitDone, releaseNow)
		s.wantOutcomes(report, map[netip.Addr]string{kept: "released", other: "released"})
	})
}
