package whereabouts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// findings makes a dry run, and returns the kind, the address and the pods of each finding, and
// for which pods the store has it.
func (f *fixture) findings() (all []string) {
	f.Helper()
	for _, one := range f.mustReap(reap.ExitDone, noLimit, "--dry-run").report.Findings {
		var pods []string
		for _, claim := range one.Claims {
			pods = append(pods, claim.Pod)
		}
		all = append(all, strings.Join([]string{one.Kind, one.IP, strings.Join(pods, "+"), "of " + strings.Join(one.Stored, "+")}, " "))
	}
	return all
}

// What a pod shows and no store has is unrecorded, and the plugin gives it to the next pod: then it
// is a duplicate, until one of the two is gone. Nothing of it is released meanwhile.
func TestAddressThatNoStoreHasIsGivenOutAgain(t *testing.T) {
	f := newFixture(t)
	n := plugin.Network{Range: "10.0.0.0/29"}
	f.attach("net", `"range":"10.0.0.0/29"`)
	ips := f.add(n, "web-0")
	f.runs("web-0", ips...)
	f.wantLines(nil, f.findings())

	f.removeEntry("10.0.0.0/29", ips[0])
	f.deleteReservation(ips[0])
	f.wantLines([]string{"unrecorded 10.0.0.1 web-0 of "}, f.findings())
	if free := f.networkOf().Free; free != "5" {
		t.Errorf("%s addresses are free, want 5 of 6", free)
	}

	f.wantAddresses(f.add(n, "web-1"), ips...)
	f.runs("web-1", ips...)
	f.wantLines([]string{"duplicate 10.0.0.1 web-0+web-1 of shop/web-1"}, f.findings())
	f.mustReap(reap.ExitDone, noLimit)
	f.wantWhole(n, "web-1", "sandbox-2", ips[0])

	f.gone("web-0")
	f.wantLines(nil, f.findings())
}

// An address that only a reservation has is blocked: the plugin gives out the others, and then says
// that the range is full.
func TestBlockedAddressIsNotFree(t *testing.T) {
	f := newFixture(t)
	n := plugin.Network{Range: "10.0.0.0/29"}
	f.attach("net", `"range":"10.0.0.0/29"`)
	ips := f.add(n, "web-0")
	f.runs("web-0", ips...)
	f.removeEntry("10.0.0.0/29", ips[0])
	before := f.networkOf()
	if given := f.exhaust(n, "other"); len(given) != 5 || before.Free != "5" || before.Blocked != 1 {
		t.Errorf("the plugin gave %v, and the network was %+v, want 5 free, 1 blocked", given, before)
	}
	f.wantLines(nil, f.findings())
}

// What another range of the same network has with its reservation is blocked in each range that
// overlaps it: the plugin gives it in neither.
func TestAddressOfAnOverlappingRangeIsBlocked(t *testing.T) {
	f := newFixture(t)
	wide, narrow := plugin.Network{Range: "10.0.0.0/28"}, plugin.Network{Range: "10.0.0.0/29"}
	f.attach("net", `"range":"10.0.0.0/28"`)
	f.attach("narrow", `"range":"10.0.0.0/29"`)
	ips := f.add(wide, "web-0")
	f.runs("web-0", ips...)
	networks := f.mustReap(reap.ExitDone, noLimit, "--dry-run").report.Networks
	i := slices.IndexFunc(networks, func(n reap.Network) bool { return n.Range == narrow.Range })
	if i < 0 || networks[i].Free != "5" || networks[i].Blocked != 1 {
		t.Errorf("the networks are %+v, want 5 free and 1 blocked in %s", networks, narrow.Range)
	}
	if given := f.exhaust(narrow, "other"); len(given) != 5 {
		t.Errorf("the plugin gave %v, want 5", given)
	}
}
