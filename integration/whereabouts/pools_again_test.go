package whereabouts_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// If there are no pools, the API server's list of their metadata has no items at all.
func TestReservationsWithoutAPoolAreReleased(t *testing.T) {
	f := newFixture(t)
	f.writeReservation("10.2.0.1", ref("gone-1"))
	f.writeReservation("10.2.0.2", ref("gone-2"))
	f.mustReap(reap.ExitDone, noLimit, inOrder)
	f.wantOwners(nothing)
}

// Promise 1. One of many pools changes after the pools were read: the owner's ADD has left an
// entry. The pools are read again, and its reservation gets its owner back.
func TestPoolThatChangesAfterATombstoneIsReadAgain(t *testing.T) {
	f := newFixture(t)
	for n := range 5 {
		f.writePool(fmt.Sprintf("10.%d.0.0-24", n), fmt.Sprintf("10.%d.0.0/24", n), `{}`)
	}
	f.writeReservation("10.2.0.1", ref("gone-1"))
	f.writeReservation("10.3.0.1", ref("gone-2"))
	changed := false
	f.toReaper.Before(proxy.On("patch overlappingrangeipreservations"), func(context.Context, proxy.Request) proxy.Action {
		if !changed {
			changed = true
			f.patch("ippools", "10.2.0.0-24", types.MergePatchType,
				fmt.Sprintf(`{"spec":{"allocations":{"1":{"id":"x","podref":%q,"ifname":"net1"}}}}`, ref("gone-1")))
		}
		return proxy.Pass()
	})
	f.reap(noLimit, inOrder)
	f.wantOwners(map[string]string{"10.2.0.0-24 10.2.0.1": ref("gone-1") + " x", "10.2.0.1": ref("gone-1")})
}
