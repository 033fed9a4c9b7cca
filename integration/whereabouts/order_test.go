package whereabouts_test

import (
	"context"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// If a reservation went before its pool's entry, another range could take the address, and an owner
// that came back would loop on the entry. So if the entry stays, for any reason, the reservation
// stays, and nothing is written to it (promise 1).
func TestReservationStaysWhereItsPoolsEntryStays(t *testing.T) {
	const entry = "10.1.0.0-24/1 10.1.0.1 web-0 "
	for _, tt := range []struct {
		name   string
		policy string
		fail   bool // the write of the pool
		exit   int
		want   []string // the entry's line, if pools are listed
		rest   string   // the rest of the reservation's line
	}{
		{
			"held by a rule", "rules:\n- {match: {backends: [whereabouts]}, hold: true}\n", false,
			reap.ExitDone, []string{entry + "held RuleHold kept"}, "held SiblingKept kept",
		},
		{"its release failed", "", true, reap.ExitPartial, []string{entry + "orphan PodAbsent failed"}, "orphan PodAbsent kept"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			ip := f.leak("web-0")
			f.writeReservation("10.2.0.1", ref("web-0")) // in no pool
			want := f.owners()
			delete(want, "10.2.0.1")
			if tt.fail {
				f.toReaper.Before(proxy.On("patch ippools"), proxy.Always(proxy.Forbidden()))
			}
			got := f.mustReap(tt.exit, tt.policy)
			f.wantOwners(want)
			f.wantLines(append(tt.want,
				"10.1.0.1 10.1.0.1 web-0 "+tt.rest,
				"10.2.0.1 10.2.0.1 web-0 orphan PodAbsent released"), got.lines)
			for _, r := range f.toReaper.Requests() {
				if r.Mutating() && r.Name == ip {
					t.Errorf("%s %s: the reservation was written", r, r.Name)
				}
			}
			f.converge()
			f.wantOwners(nothing)
		})
	}
}

// The owner comes back, takes its address again and dies again, all during the run: the entry that
// it leaves in the pool is new, with its own grace period, so the reservation stays as well. The
// pools that the run read before the tombstones are too old to tell (promise 4).
func TestReservationStaysWhereItsOwnerWasBackForAMoment(t *testing.T) {
	f := newFixture(t)
	f.writeReservation("10.0.0.1", ref("gone")) // which comes first
	ip := f.leak("web-0")
	f.toReaper.Before(proxy.Nth(1, proxy.On("patch overlappingrangeipreservations")), f.wasBack("web-0", ip))
	f.mustReap(reap.ExitDone, "", inOrder)
	f.wantOwners(map[string]string{poolName(network.Range) + " " + ip: ref("web-0") + " " + newSandbox, ip: ref("web-0")})
	f.converge()
	f.wantOwners(nothing)
}

// Once all tombstones of a batch are written, such an owner takes another address, although only
// the first reservation is about to be deleted (promise 4).
func TestOwnerThatWasBackForAMomentMeetsItsTombstone(t *testing.T) {
	f := newFixture(t)
	f.writeReservation("10.0.0.1", ref("gone")) // which comes first
	f.leak("web-0")
	const another = "10.1.0.2"
	f.toReaper.Before(proxy.Nth(1, proxy.On("delete overlappingrangeipreservations")), f.wasBack("web-0", another))
	f.mustReap(reap.ExitDone, "", inOrder)
	f.wantOwners(map[string]string{poolName(network.Range) + " " + another: ref("web-0") + " " + newSandbox, another: ref("web-0")})
	f.converge()
	f.wantOwners(nothing)
}

// wasBack makes a pod come back, its ADD get the address, and the pod disappear again.
func (f *fixture) wasBack(pod, ip string) proxy.Hook {
	return func(context.Context, proxy.Request) proxy.Action {
		h := f.comesBack(pod)
		h.write()
		if h.err != nil || h.ip != ip {
			f.Errorf("ADD: %s, %v, want %s", h.ip, h.err, ip)
		}
		f.gone(pod)
		return proxy.Pass()
	}
}
