package calico_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// The other way around: a real ADD or DEL has read the block, and the reaper writes it before the
// plugin does. The plugin is refused, and still does its job (promise 1).
func TestReaperReleasesFromABlockWhileThePluginIsWritingIt(t *testing.T) {
	for _, tt := range []struct {
		name   string
		plugin func(s *fixture, d *calico.Datastore, orphan calico.Sandbox) ([]netip.Addr, error)
		comes  string // the pod that it is an ADD for
	}{{
		name: "an ADD for another pod",
		plugin: func(s *fixture, d *calico.Datastore, _ calico.Sandbox) ([]netip.Addr, error) {
			return d.Add(s.Context(), calico.NewSandbox(shop, "new", node))
		},
		comes: "new",
	}, {
		// It counts in the handle before the reaper lists the handle.
		name: "a second ADD for the orphan's sandbox, under the same handle",
		plugin: func(s *fixture, d *calico.Datastore, orphan calico.Sandbox) ([]netip.Addr, error) {
			return d.Add(s.Context(), orphan)
		},
		comes: "gone",
	}, {
		name: "the orphan's own DEL",
		plugin: func(s *fixture, d *calico.Datastore, orphan calico.Sandbox) ([]netip.Addr, error) {
			return nil, d.Del(s.Context(), orphan)
		},
	}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t, calico.KubernetesT(t))
			orphan, ip := s.leak("gone")
			_, web := s.live("web")
			want := map[string]bool{web.String(): true}

			toPlugin := s.proxy()
			gate, done := proxy.NewGate(), make(chan error, 1)
			toPlugin.Before(proxy.Nth(1, proxy.On("update ipamblocks")), gate.Hook)
			through, err := s.Through(s.kubeconfigOf(toPlugin))
			s.must(err)
			go func() {
				ips, err := tt.plugin(s, through, orphan)
				if err == nil && tt.comes != "" {
					sandbox := calico.NewSandbox(shop, tt.comes, node)
					err = s.CreatePod(s.Context(), sandbox, ips)
					want[ips[0].String()] = true
				}
				done <- err
			}()
			select {
			case <-gate.Arrived():
			case err := <-done:
				s.Fatalf("the plugin wrote no block: %v", err)
			}
			report := s.mustReap(reap.ExitDone, releaseNow)
			s.wantOutcomes(report, map[netip.Addr]string{ip: "released", web: "kept"})
			gate.Open()
			s.must(<-done)
			s.wantWhole(want)
		})
	}
}

// An address is allocated under the handle of one that was just released, before the handle is
// written: it keeps the handle.
func TestHandleThatCountsAnotherAddressMeanwhileStays(t *testing.T) {
	for name, families := range map[string]struct {
		both bool
		hold string
	}{
		"when it is about to be deleted": {false, "delete ipamhandles"},
		"when it is about to be counted": {true, "update ipamhandles"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, calico.KubernetesT(t))
			orphan := calico.NewSandbox(shop, "gone", node)
			orphan.IPv4, orphan.IPv6 = true, families.both
			_, err := s.Add(s.Context(), orphan)
			s.must(err)
			want := map[string]bool{}
			s.reapWhileHeld(releaseNow, families.hold, func() {
				ips, err := s.Add(s.Context(), orphan)
				s.must(err)
				s.must(s.CreatePod(s.Context(), orphan, ips))
				for _, ip := range ips {
					want[ip.String()] = true
				}
			})
			s.wantWhole(want)
			// A DEL finds what the handle counts.
			s.must(s.Del(s.Context(), orphan))
			s.dies(orphan)
			s.wantWhole(map[string]bool{})
		})
	}
}

// An ADD that outlasts the kubelet's patience is between writing its handle and its block when the
// handle, without an address for so long, is released. The pod still has its address, which is
// released once the pod is gone, although no DEL finds it any more.
func TestAddThatIsOvertakenByTheEndOfItsHandleKeepsItsAddress(t *testing.T) {
	s := newFixture(t, calico.KubernetesT(t))
	_, web := s.live("web")
	toPlugin := s.proxy()
	gate, done := proxy.NewGate(), make(chan error, 1)
	toPlugin.Before(proxy.Nth(1, proxy.On("update ipamblocks")), gate.Hook)
	through, err := s.Through(s.kubeconfigOf(toPlugin))
	s.must(err)
	slow := calico.NewSandbox(shop, "slow", node)
	var ips []netip.Addr
	go func() {
		var err error
		ips, err = through.Add(s.Context(), slow)
		done <- err
	}()
	select {
	case <-gate.Arrived():
	case err := <-done:
		s.Fatalf("the plugin wrote no block: %v", err)
	}
	s.mustReap(reap.ExitDone, releaseNow)
	if _, err := s.Get(t.Context(), calico.Handle, s.HandleName(slow.Handle())); err != nil {
		t.Errorf("the handle went at once: %v", err)
	}
	s.later(releaseNow)
	if _, err := s.Get(t.Context(), calico.Handle, s.HandleName(slow.Handle())); !errors.Is(err, calico.ErrNotFound) {
		t.Errorf("get handle: %v, want that it is gone", err)
	}
	gate.Open()
	s.must(<-done)
	s.must(s.CreatePod(t.Context(), slow, ips))

	report := s.later(releaseNow)
	s.wantOutcomes(report, map[netip.Addr]string{ips[0]: "kept", web: "kept"})
	s.must(s.Del(t.Context(), slow))
	s.dies(slow)
	report = s.mustReap(reap.ExitDone, releaseNow)
	s.wantOutcomes(report, map[netip.Addr]string{ips[0]: "released", web: "kept"})
	s.wantWhole(map[string]bool{web.String(): true})
}
