package whereabouts_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// tombstone is the podref of a reservation while it is being released, and after a run that was
// killed then.
const tombstone = "_ip-reaper/_released"

// The tombstone keeps the whole spec, which the next run or a restore puts back (promises 6 and 8).
func TestTombstoneIsPutBackAsTheSpecThatItReplaced(t *testing.T) {
	const resource, ip = "overlappingrangeipreservations", "10.0.0.1"
	for _, back := range []string{"by the next run", "by a restore", "by a restore after the release"} {
		t.Run(back, func(t *testing.T) {
			f := newFixture(t)
			f.write(resource, `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation",
				"metadata":{"name":"`+ip+`","annotations":{"a":"b"}},"spec":{"podref":"`+ref("web-0")+`","ifname":"net1","containerid":"c-1"}}`)
			whole, before := f.records(), f.store()
			f.killedAfter("patch " + resource)
			f.patch(resource, ip, types.MergePatchType, `{"spec":{"ifname":"net9","containerid":null}}`) // by another client
			f.wantOwners(map[string]string{ip: tombstone})
			switch buried := f.records(); back {
			case "by the next run":
				f.pod("web-0", pending)
				f.mustReap(reap.ExitDone, "")
			case "by a restore":
				f.wantLines([]string{ip + " back"}, f.restore(f.Config, whole))
			default:
				f.release()
				f.wantOwners(nothing)
				f.wantLines([]string{ip + " back"}, f.restore(f.Config, buried))
			}
			f.wantReborn(before)
		})
	}
}

// If the second look at the owner fails, the first try leaves a tombstone, and the next finds the
// owner alive. What the report then calls returned has its owner again (promise 7).
func TestOwnerThatComesBackBetweenTwoTriesGetsItsReservationBack(t *testing.T) {
	for _, tt := range []struct {
		name string
		fail proxy.Match
	}{
		{"the second look failed", proxy.Nth(3, proxy.On("get pods"))},
		{"putting it back failed", proxy.Nth(2, proxy.On("patch overlappingrangeipreservations"))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			ip := f.leak("web-0")
			var h *heldAdd
			f.toReaper.Before(proxy.Nth(1, proxy.On("patch overlappingrangeipreservations")),
				func(context.Context, proxy.Request) proxy.Action {
					h = f.comesBack("web-0")
					return proxy.Pass()
				})
			f.toReaper.After(proxy.Nth(1, proxy.On("patch overlappingrangeipreservations")),
				func(context.Context, proxy.Request) proxy.Action {
					h.write()
					return proxy.Pass()
				})
			f.toReaper.Before(tt.fail, proxy.Always(proxy.InternalError()))
			got := f.reap("")
			if h.err != nil || h.ip != ip {
				t.Fatalf("ADD: %s, %v, want %s", h.ip, h.err, ip)
			}
			if outcome := got.outcomes()["overlapping "+ip]; outcome == "returned" {
				f.wantWhole(network, "web-0", newSandbox, ip)
			} else if got.exit != reap.ExitPartial || outcome != "failed" {
				t.Errorf("exit code %d, outcome %s, want 3 and failed", got.exit, outcome)
			}
			f.converge()
			f.wantWhole(network, "web-0", newSandbox, ip)
		})
	}
}
