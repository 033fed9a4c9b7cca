package safety_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A allocation that went before its pool's entry would let another range take
// the address, and the owner, should it come back, would spin on the entry. So
// where the entry stays, for whatever reason, the allocation stays, and
// nothing is written into it (promise 1).
func TestAllocationStaysWhereItsPoolsEntryStays(t *testing.T) {
	forbid := func(s *scene) { s.toReaper.Before(proxy.On("patch ippools"), proxy.Always(proxy.Forbidden())) }
	for _, tt := range []struct {
		name    string
		policy  string
		prepare func(*scene)
		exit    int
		entry   string // outcome of the entry; none where pools are not looked at
	}{
		{"held by a rule", "rules:\n- {match: {backends: [whereabouts]}, hold: true}\n", nil, reap.ExitDone, "kept"},
		{"within its grace period", "rules:\n- {match: {backends: [whereabouts]}, gracePeriod: 1h}\n", nil, reap.ExitDone, "kept"},
		{"pools are switched off", "backends: {whereabouts: {enabled: false}}\n", nil, reap.ExitDone, ""},
		{"its release failed", "", forbid, reap.ExitPartial, "failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.pod(t, "bystander")
			ip := s.leak(t, "web-0")
			s.reserve(t, "10.2.0.1", s.ref("web-0")) // which no pool holds
			want := s.store(t)
			delete(want, "10.2.0.1")
			if tt.prepare != nil {
				tt.prepare(s)
			}
			result := s.run(t, tt.exit, releaseNow+tt.policy)
			s.checkStore(t, want)
			got := outcomes(result.Report)
			wantOutcomes := map[string]string{
				allocationBackend + " " + ip: "kept", allocationBackend + " 10.2.0.1": "released",
			}
			if tt.entry != "" {
				wantOutcomes[poolBackend+" "+ip] = tt.entry
			}
			if diff := cmp.Diff(wantOutcomes, got); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			for _, r := range s.toReaper.Requests() {
				if r.Mutating() && r.Name == ip {
					t.Errorf("%s %s: the reservation was written", r, r.Name)
				}
			}
			s.converge(t, releaseNow)
			s.checkStore(t, store{})
		})
	}
}

// The owner comes back, takes its address again and dies once more, all while
// the run is at work: the entry that it leaves in the pool is a new one, with a
// grace period of its own, and so the allocation stays as well. What the run
// has read of the pools before it released others is too old to tell (promise
// 4).
func TestAllocationStaysWhereItsOwnerWasBackForAMoment(t *testing.T) {
	s := newScene(t)
	s.pod(t, "bystander")
	s.reserve(t, "10.0.0.1", s.ref("gone")) // which comes first
	ip := s.leak(t, "web-0")
	s.toReaper.Before(proxy.Nth(1, proxy.On("delete overlappingrangeipreservations")),
		func(context.Context, proxy.Request) proxy.Action {
			v := s.comes(t, "web-0")
			v.writes()
			if v.err != nil || v.ip != ip {
				t.Errorf("ADD: %s, %v, want %s again", v.ip, v.err, ip)
			}
			s.dies(t, "web-0")
			return proxy.Pass()
		})
	s.run(t, reap.ExitDone, releaseNow, inOrder)
	s.checkStore(t, store{poolName(network.Range) + " " + ip: s.ref("web-0") + " " + newSandbox, ip: s.ref("web-0")})
	s.converge(t, releaseNow)
	s.checkStore(t, store{})
}
