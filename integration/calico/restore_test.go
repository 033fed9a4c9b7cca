package calico_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	backend "github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// records records the addresses as listed now, by block.
func (s *fixture) records(b ipam.Backend, ips ...netip.Addr) map[string][]ipam.Record {
	s.Helper()
	var rs []ipam.Allocation
	for u, err := range b.List(s.Context()) {
		s.must(err)
		for _, r := range u.Allocations {
			if r.Pool = u.Name; slices.Contains(ips, r.IP) {
				rs = append(rs, r)
			}
		}
	}
	stored, err := b.Record(s.Context(), rs)
	s.must(err)
	all := map[string][]ipam.Record{}
	for i, r := range rs {
		if len(stored[i]) == 0 {
			s.Fatalf("%s has no record", r.IP)
		}
		all[r.Pool] = append(all[r.Pool], ipam.Record{
			Backend: backend.Name, Pool: r.Pool, Key: r.Key, IP: r.IP.String(), Stored: stored[i],
		})
	}
	return all
}

// restore puts back what was recorded, and fails the test unless each answer is want.
func (s *fixture) restore(b ipam.Backend, all map[string][]ipam.Record, want error) {
	s.Helper()
	for pool, records := range all {
		for i, err := range b.Restore(s.Context(), pool, records, backendtest.Permit) {
			if !errors.Is(err, want) {
				s.Errorf("restore %s: %v, want %v", records[i].IP, err, want)
			}
		}
	}
}

// wantRestored fails the test unless everything that Calico stores is as it was.
func (s *fixture) wantRestored(before map[string]string) {
	s.Helper()
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		s.Errorf("stored (-before +after):\n%s", diff)
	}
}

// What a run released is put back as it was, and belongs to its sandbox again: one family and both,
// alongside addresses that stayed (promise 10).
func TestWhatWasReleasedIsRestored(t *testing.T) {
	each(t, func(s *fixture) {
		_, web := s.live("web")
		single, one := s.leak("gone")
		dual, both := s.dual("gone-too")
		shared := s.share(one)
		s.must(s.PutHandle(s.Context(), single.Handle(), map[netip.Prefix]int{s.blockOf(one): 2}))
		s.live("last")
		before, leaked := s.snapshot(), append([]netip.Addr{one, shared}, both...)
		b := s.backend()
		records := s.records(b, leaked...)
		report := s.mustReap(reap.ExitDone, releaseNow)
		for _, ip := range leaked {
			if got := lines(report)[ip.String()]; got != "orphan PodAbsent released" {
				s.Errorf("%s is %q", ip, got)
			}
		}
		s.restore(b, records, nil)
		s.wantRestored(before)
		s.restore(b, records, ipam.ErrPresent)
		s.wantRestored(before)
		s.wantCounts()
		r, err := s.Check(s.Context())
		s.must(err)
		if len(r.NoHandle)+len(r.LeakedHandles)+len(r.MissingHandles)+len(r.NotAllocated) > 0 {
			s.Errorf("calicoctl finds problems:\n%s", r.Text)
		}

		// The plugin recognizes them again.
		for _, sandbox := range []calico.Sandbox{single, dual} {
			s.must(s.Del(s.Context(), sandbox))
		}
		held := s.held()
		for _, ip := range leaked {
			if held[ip.String()] {
				s.Errorf("%s is allocated after its DEL", ip)
			}
		}
		if !held[web.String()] {
			s.Errorf("%s is not allocated any more", web)
		}
		s.clean()
		s.wantCounts()
	})
}

// A real ADD writes the block between our read and our write: what it took is its own (promise 1).
// A later run removes the restore's surplus counts.
func TestRestoreLosesAgainstAnADD(t *testing.T) {
	for name, tt := range map[string]struct {
		add  func(s *fixture, ip netip.Addr)
		want error
	}{
		"of another address":  {func(s *fixture, _ netip.Addr) { s.live("new") }, nil},
		"of the same address": {func(s *fixture, ip netip.Addr) { s.liveAt("new", calico.NewContainerID(), ip) }, ipam.ErrTaken},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(s *fixture) {
				_, ip := s.leak("gone")
				records := s.records(s.backend(), ip)
				s.mustReap(reap.ExitDone, releaseNow)
				s.restore(s.overtaken(func() { tt.add(s, ip) }), records, tt.want)
				if !s.held()[ip.String()] {
					s.Errorf("%s is not allocated", ip)
				}
				s.mustReap(reap.ExitDone, releaseNow)
				s.later(releaseNow)
				s.clean()
				s.wantCounts()
			})
		})
	}
}

// overtaken returns a backend, and do happens before its first write of a block.
func (s *fixture) overtaken(do func()) ipam.Backend {
	s.Helper()
	if s.Etcd != nil {
		b, err := s.intercepted(func(t reap.Transaction) error {
			do()
			return t.Forward()
		}).Blocks(nil)
		s.must(err)
		return b
	}
	p := s.proxy()
	p.Before(proxy.Nth(1, proxy.On("update ipamblocks")), func(context.Context, proxy.Request) proxy.Action {
		do()
		return proxy.Pass()
	})
	return s.behind(p)
}

// behind returns a backend that reaches the API server through a proxy.
func (s *fixture) behind(p *proxy.Proxy) *backend.Backend {
	s.Helper()
	config := rest.CopyConfig(p.Config(s.Cluster.Config))
	config.QPS = -1
	client, err := kube.RawClient(config)
	s.must(err)
	return backend.NewKubernetes(client, 8)
}
