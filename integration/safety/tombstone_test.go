package safety_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// tombstone is what stands in a reservation while it is being released, and
// after a run that was killed meanwhile.
const tombstone = "_ip-reaper/_released"

// bury leaves a tombstone in the reservation of a dead pod, as a killed run
// does, and returns its address.
func (s *scene) bury(t *testing.T, pod string) (ip string) {
	t.Helper()
	ip = s.leak(t, pod)
	s.killed(t, moments[1], proxy.On("patch overlappingrangeipreservations"), releaseNow)
	s.toReaper.Reset()
	s.checkStore(t, store{ip: tombstone})
	return ip
}

// A tombstone is put back where the next run finds that the reservation has to
// stay, and left alone by a run that may not write (promises 5 and 8).
func TestTombstoneIsPutBackWhereTheAllocationHasToStay(t *testing.T) {
	const (
		held  = "rules:\n- {match: {pods: [\"web-*\"]}, hold: true}\n"
		away  = "namespaces: {exclude: [\"test-*\"]}\n"
		alone = "backends: {whereabouts: {enabled: false}}\n"
		small = "limits: {maxFraction: 0.1, minEntries: 1}\n"
	)
	comes := func(t *testing.T, s *scene, _ string) { s.pod(t, "web-0") }
	holds := func(t *testing.T, s *scene, ip string) { s.hold(t, ip, "web-0") }
	for _, tt := range []struct {
		name    string
		policy  string
		args    []string
		prepare func(t *testing.T, s *scene, ip string)
		exit    int
		back    bool
	}{
		{"a rule holds it now", held, nil, nil, reap.ExitDone, true},
		{"it is out of scope now", away, nil, nil, reap.ExitDone, true},
		{"its pod is back, without an address so far", "", nil, comes, reap.ExitDone, true},
		{"a pool holds the address for its owner", alone, nil, holds, reap.ExitDone, true},
		{"a dry run", "", []string{"--dry-run"}, nil, reap.ExitDone, false},
		{"a refused limit", small, nil, nil, reap.ExitLimit, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.pod(t, "bystander")
			ip := s.bury(t, "web-0")
			if tt.prepare != nil {
				tt.prepare(t, s, ip)
			}
			want := s.store(t)
			if tt.back {
				want[ip] = s.ref("web-0")
			}
			s.run(t, tt.exit, releaseNow+tt.policy, tt.args...)
			s.checkStore(t, want)
			if got := reap.StoreWrites(s.toReaper.Mutations()); !tt.back && len(got) > 0 {
				t.Errorf("writes: %v, want none", got)
			}
		})
	}
}

// hold gives the pool an entry for the pod.
func (s *scene) hold(t *testing.T, ip, pod string) {
	t.Helper()
	offset := strings.TrimPrefix(ip, "10.1.0.")
	body := `{"spec":{"allocations":{"` + offset + `":{"id":"sandbox-x","podref":"` + s.ref(pod) + `","ifname":"net1"}}}}`
	_, err := s.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).Patch(t.Context(),
		poolName(network.Range), types.MergePatchType, []byte(body), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// A tombstone that does not say any more whose it was is not understood, and
// what is not understood is not rewritten (promise 6).
func TestTombstoneWithoutAnOwnerIsLeftAlone(t *testing.T) {
	s := newScene(t)
	s.pod(t, "bystander")
	ip := s.bury(t, "web-0")
	_, err := s.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(cluster.PoolNamespace).Patch(t.Context(),
		ip, types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, reap.ExitDone, releaseNow)
	s.checkStore(t, store{ip: tombstone})
}

// Where the second look at the owner fails, the first try leaves a tombstone
// and the next one finds the owner alive. What the report then calls returned
// has its owner again (promise 7).
func TestOwnerThatComesBackBetweenTwoTriesGetsItsAllocationBack(t *testing.T) {
	for _, tt := range []struct {
		name string
		fail proxy.Match
	}{
		{"the second look failed", proxy.Nth(3, proxy.On("get pods"))},
		{"putting it back failed", proxy.Nth(2, proxy.On("patch overlappingrangeipreservations"))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.pod(t, "bystander")
			ip := s.leak(t, "web-0")
			var v *visitor
			s.toReaper.Before(proxy.Nth(1, proxy.On("patch overlappingrangeipreservations")),
				func(context.Context, proxy.Request) proxy.Action {
					v = s.comes(t, "web-0")
					return proxy.Pass()
				})
			s.toReaper.After(proxy.Nth(1, proxy.On("patch overlappingrangeipreservations")),
				func(context.Context, proxy.Request) proxy.Action {
					v.writes()
					return proxy.Pass()
				})
			s.toReaper.Before(tt.fail, proxy.Always(proxy.InternalError()))
			result, err := s.start(t, releaseNow).Wait()
			if err != nil {
				t.Fatal(err)
			}
			if v.err != nil || v.ip != ip {
				t.Fatalf("ADD: %s, %v, want %s", v.ip, v.err, ip)
			}
			if got := outcomes(result.Report)[allocationBackend+" "+ip]; got == "returned" {
				s.checkWhole(t, network, "web-0", newSandbox, ip)
			} else if result.ExitCode != reap.ExitPartial || got != "failed" {
				t.Errorf("exit code %d, outcome %s, want 3 and failed", result.ExitCode, got)
			}
			s.converge(t, releaseNow)
			s.checkWhole(t, network, "web-0", newSandbox, ip)
		})
	}
}
