package whereabouts_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// tombstone is the podref of a reservation while it is being released, and after a run that was
// killed then.
const tombstone = "_ip-reaper/_released"

// bury leaves a tombstone in the reservation of a dead pod, like a killed run, and returns its
// address.
func (f *fixture) bury(pod string) (ip string) {
	f.Helper()
	ip = f.leak(pod)
	f.killedAfter("patch overlappingrangeipreservations")
	f.wantOwners(map[string]string{ip: tombstone})
	return ip
}

// A tombstone is undone if the next run finds that the reservation must stay, and left alone by a
// run that must not write (promises 5 and 8).
func TestTombstoneIsPutBackWhereTheReservationHasToStay(t *testing.T) {
	const (
		held  = "rules:\n- {match: {pods: [\"web-*\"]}, hold: true}\n"
		alone = "backends: {whereabouts: {enabled: false}}\n"
	)
	for _, tt := range []struct {
		name   string
		policy string
		args   []string
		set    func(f *fixture, ip string) // may be nil
		exit   int
		line   string // without the address
	}{
		{"a rule holds it now", held, nil, nil, reap.ExitDone, "held RuleHold returned"},
		{
			"a pool holds the address for its owner", alone, nil,
			func(f *fixture, ip string) { f.hold(ip, "web-0") }, reap.ExitDone, "orphan PodAbsent returned",
		},
		{"a dry run", "", []string{"--dry-run"}, nil, reap.ExitDone, "orphan PodAbsent planned"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			ip := f.leak("web-0")
			whole := f.store().content[ip]
			f.killedAfter("patch overlappingrangeipreservations")
			f.wantOwners(map[string]string{ip: tombstone})
			if tt.set != nil {
				tt.set(f, ip)
			}
			want := f.store().content
			back := tt.exit == reap.ExitDone && len(tt.args) == 0
			if back {
				want[ip] = whole
			}
			got := f.mustReap(tt.exit, tt.policy, tt.args...)
			f.wantLines([]string{ip + " " + ip + " web-0 " + tt.line}, got.lines)
			f.wantStore(store{content: want})
			if got := reap.StoreWrites(f.toReaper.Mutations()); !back && len(got) > 0 {
				t.Errorf("writes: %v, want none", got)
			}
		})
	}
}

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
				f.release(buried, 0)
				f.wantOwners(nothing)
				f.wantLines([]string{ip + " back"}, f.restore(f.Config, buried))
			}
			f.wantReborn(before)
		})
	}
}

// hold gives the pool an entry for the pod.
func (f *fixture) hold(ip, pod string) {
	f.Helper()
	key := strings.TrimPrefix(ip, "10.1.0.")
	f.patch("ippools", poolName(network.Range), types.MergePatchType,
		`{"spec":{"allocations":{"`+key+`":{"id":"sandbox-x","podref":"`+ref(pod)+`","ifname":"net1"}}}}`)
}

// A tombstone that no longer says whose it was is not understood, and what is not understood is not
// rewritten (promise 6).
func TestTombstoneWithoutAnOwnerIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	ip := f.bury("web-0")
	f.patch("overlappingrangeipreservations", ip, types.MergePatchType, `{"metadata":{"annotations":null}}`)
	f.mustReap(reap.ExitDone, "")
	f.wantOwners(map[string]string{ip: tombstone})
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

// A server's request to retry later is respected, and still no write relies on a look at the owner
// from before the wait (promise 4).
func TestEveryWriteThatHasToWaitIsConfirmedAnew(t *testing.T) {
	const wait = 3 * time.Second
	writes := []string{"delete overlappingrangeipreservations", "patch ippools"}
	for _, request := range kit.SampleBy(writes, func(string) bool { return true }) {
		t.Run(request, func(t *testing.T) {
			f := newFixture(t)
			f.fill(network.Range, map[int]string{1: "gone"})
			var mu sync.Mutex
			var looked, refused time.Time
			f.toReaper.Before(proxy.On("get pods"), func(context.Context, proxy.Request) proxy.Action {
				mu.Lock()
				defer mu.Unlock()
				looked = time.Now()
				return proxy.Pass()
			})
			f.toReaper.Before(proxy.Nth(1, proxy.On(request)), func(context.Context, proxy.Request) proxy.Action {
				mu.Lock()
				defer mu.Unlock()
				refused = time.Now()
				return proxy.TooManyRequests(wait)
			})
			f.toReaper.Before(proxy.On(request), func(context.Context, proxy.Request) proxy.Action {
				mu.Lock()
				defer mu.Unlock()
				if !looked.After(refused) {
					t.Errorf("%s rests on a look at the owner from before it was refused", request)
				}
				if waited := time.Since(refused); waited < wait {
					t.Errorf("%s came again after %v, %v was asked for", request, waited.Round(time.Millisecond), wait)
				}
				return proxy.Pass()
			})
			f.mustReap(reap.ExitDone, "")
			f.wantOwners(nothing)
		})
	}
}
