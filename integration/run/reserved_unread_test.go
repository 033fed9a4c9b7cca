package run_test

import (
	"fmt"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Promise 2. If the objects that protect addresses cannot be listed, a
// run holds everything that has no owner, and the output says why.
func TestReservedIPsThatCannotBeReadHoldEverything(t *testing.T) {
	const ofGroup = ".v1alpha1.network.example.com"
	forbid := proxy.Always(proxy.Forbidden())
	for _, tt := range []struct {
		name   string
		set    func(*fixture)
		policy string
		says   string
	}{
		{"the list is forbidden", func(f *fixture) { f.toReaper.Before(proxy.On("list reservedips"), forbid) }, reservedIPs,
			"backends.reservedIPs.resources[0]: list reservedips" + ofGroup + ": grant list on it to the reaper, or take it out of the policy"},
		{"another list is forbidden", func(f *fixture) { f.toReaper.Before(proxy.On("list clusterreservedips"), forbid) }, reservedIPs,
			"backends.reservedIPs.resources[1]: list clusterreservedips" + ofGroup + ": grant list on it to the reaper, or take it out of the policy"},
		{"a resource that is not served", func(*fixture) {}, reservedIPs + `    - resource: {group: network.example.com, version: v1alpha1, resource: addresses}
      address: .spec.ip
      ttl: .spec.ttl
`, "backends.reservedIPs.resources[2]: list addresses" + ofGroup + ": the API server does not serve it: install it, or take it out of the policy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.live("web-0")
			f.leak("web-1")
			tt.set(f)
			for _, args := range [][]string{{"--dry-run"}, {}} {
				got := f.reap(reap.ExitPartial, atOnce+tt.policy, args...)
				f.wantSaid(got.Report, decisions{"web-0": present, "web-1": reserved})
				f.wantText(got.Stderr, tt.says)
				f.wantText(noteOf(got.Report, "web-1"), "reservedIPs could not be read: ")
				f.wantText(noteOf(got.Report, "web-1"), tt.says)
				for _, b := range got.Report.Backends {
					if (b.Name == "reservedIPs") != (b.Status == "failed") {
						t.Errorf("backend %s is %s: %s", b.Name, b.Status, b.Message)
					}
				}
			}
		})
	}
}

// noteOf is the note of the entry of a pod.
func noteOf(r *reap.Report, pod string) string {
	for _, e := range r.Entries {
		if e.Owner.Pod == pod {
			return e.Note
		}
	}
	return ""
}

// The other way round: an object goes after the addresses that it keeps, and not while a
// store cannot be read that could hold one of them.
func TestReservedIPStaysWhileAStoreCannotBeRead(t *testing.T) {
	for _, list := range []string{"list ippools", "list overlappingrangeipreservations"} {
		t.Run(list, func(t *testing.T) {
			f := newFixture(t)
			f.network = wide
			// The pod lives, and shows nothing yet.
			ip := f.leak("web-0")
			f.pod("web-0", cluster.Phase("Pending"))
			f.reserve("ReservedIP", "web", fmt.Sprintf(`"spec":{"ttl":"0s"},"status":{"ips":[%q]}`, ip))
			f.toReaper.Before(proxy.On(list), proxy.Always(proxy.Forbidden()))
			for range 2 {
				got := said(f.reap(reap.ExitPartial, atOnce+reservedIPs).Report)["object web"]
				if got != reserved && got != "inUse AddressInUse kept" {
					t.Errorf("the object is %s", got)
				}
			}
			f.wantObjects("web")
			f.toReaper.Reset()
			f.wantSaid(f.reap(reap.ExitDone, atOnce+reservedIPs).Report, decisions{"web-0": present, "object web": "inUse AddressInUse kept"})
		})
	}
}
