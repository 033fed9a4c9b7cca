package whereabouts_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// stopped leaks the address of a virtual machine that is stopped: its launcher pod is
// gone, and entry and reservation have the field by which a later version of the
// plugin names the machine's claim.
func (f *fixture) stopped(pod string) {
	f.Helper()
	f.wantAddresses(f.add(lan, pod), "10.0.0.1")
	f.patch("ippools", "10.0.0.0-24", types.MergePatchType, `{"spec":{"allocations":{"1":{"ipamclaimref":"shop/vm"}}}}`)
	f.patch("overlappingrangeipreservations", "10.0.0.1", types.MergePatchType, `{"spec":{"ipamclaimref":"shop/vm"}}`)
	for name, text := range f.store().content {
		if name != "10.0.0.0-24" && !strings.Contains(text, "shop/vm") {
			f.Fatalf("the API server pruned the claim of %s: %s", name, text)
		}
	}
}

// The address of a virtual machine that is stopped goes when its claim is gone, and not
// before: also not where it is not known whether there is one (promise 2). What no claim
// has goes meanwhile.
func TestAddressOfAStoppedVirtualMachineStaysWithItsClaim(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(f *fixture)
		rest string // of the address's lines
		note string // a part of it
	}{
		{"its claim exists", func(f *fixture) { f.DefineClaimsT(f); f.must(f.CreateClaim(f.Context(), shop, "vm")) },
			"held Protected kept", "IPAMClaim shop/vm exists"},
		{"a claim of that name in another namespace", func(f *fixture) { f.DefineClaimsT(f); f.must(f.CreateClaim(f.Context(), "default", "vm")) },
			"orphan PodAbsent released", ""},
		{"its claim is gone", func(f *fixture) { f.DefineClaimsT(f) }, "orphan PodAbsent released", ""},
		{"claims are not served", func(*fixture) {}, "held Protected kept", "does not serve ipamclaims.k8s.cni.cncf.io/v1alpha1"},
		{"claims are forbidden", func(f *fixture) {
			f.DefineClaimsT(f)
			f.toReaper.Before(proxy.On("list ipamclaims"), proxy.Always(proxy.Forbidden()))
		}, "held Protected kept", "injected: forbidden"},
		{"its pod is there", func(f *fixture) { f.DefineClaimsT(f); f.runs("launcher", "10.0.0.1") }, "inUse PodPresent kept", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.KeepClaimsT(t)
			f.stopped("launcher")
			f.wantAddresses(f.add(lan, "web-0"), "10.0.0.2")
			tt.set(f)
			before := f.store()
			got := f.mustReap(reap.ExitDone, noLimit)
			f.wantLines(append(
				both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 launcher "+tt.rest),
				both("10.0.0.0-24/2", "10.0.0.2", "10.0.0.2 web-0 orphan PodAbsent released")...), got.lines)
			f.wantStore(before.without(got.lines))
			for _, e := range got.report.Entries {
				if e.IP == "10.0.0.1" && !strings.Contains(e.Note, tt.note) {
					t.Errorf("%s: note %q, want %q in it", e.Backend, e.Note, tt.note)
				}
			}
		})
	}
}

// A claim is made and a new launcher pod takes the address over, after the claims were
// listed. It writes its own podref into entry and reservation, as pull request 742 of
// Whereabouts does. Both stay (promises 1 and 4).
func TestAddressThatIsTakenOverForAClaimStays(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before string // the request of the run
		alone  bool   // the reservation has no entry
	}{
		{"before the entry goes", "patch ippools", false},
		{"before the tombstone", "patch overlappingrangeipreservations", true},
		{"after the tombstone", "delete overlappingrangeipreservations", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.KeepClaimsT(t)
			f.DefineClaimsT(f)
			f.stopped("launcher-a")
			if tt.alone {
				f.emptyPool("10.0.0.0-24")
			}
			f.toReaper.Before(proxy.Nth(1, proxy.On(tt.before)), func(context.Context, proxy.Request) proxy.Action {
				f.takeOver()
				return proxy.Pass()
			})
			f.reap(noLimit)
			want := map[string]string{"10.0.0.1": ref("launcher-b"), "10.0.0.0-24 10.0.0.1": ref("launcher-b") + " sandbox-b"}
			f.wantOwners(want)
			f.converge()
			f.wantOwners(want)
		})
	}
}

// takeOver has another launcher pod take the address of the claim. It does not end the
// test.
func (f *fixture) takeOver() {
	ctx := f.Context()
	_, err := f.CreatePod(ctx, shop, "launcher-b", shows("net1", "10.0.0.1"))
	fields := fmt.Sprintf(`"podref":%q,"ipamclaimref":"shop/vm","ifname":"net1"`, ref("launcher-b"))
	claimErr := f.CreateClaim(ctx, shop, "vm")
	if err := errors.Join(err, claimErr,
		f.tryPatch("ippools", "10.0.0.0-24", types.MergePatchType, `{"spec":{"allocations":{"1":{"id":"sandbox-b",`+fields+`}}}}`),
		f.tryPatch("overlappingrangeipreservations", "10.0.0.1", types.MergePatchType, `{"spec":{`+fields+`}}`)); err != nil {
		f.Error(err)
	}
}
