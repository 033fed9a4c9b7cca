package hostlocal_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A storm is many concurrent ADDs and DELs during runs of the reaper.
type storm struct {
	*world
	left atomic.Int64 // how many sandboxes to make
	full atomic.Int64 // ADDs that found no free address

	mu   sync.Mutex
	held map[netip.Addr]ipam.Owner // by live sandboxes
	dead []ipam.Owner
}

// Sandboxes come and go, some without a DEL, in a nearly full network, so that what the reaper
// releases is immediately allocated again. Two reapers run all the time, under a policy that waits
// for nothing, and do not know about each other: their states are in different folders. No live
// sandbox loses its lease, no address is given twice, and in the end what is
// dead is gone and nothing else (promises 1, 7 and 8).
func TestEverySandboxOfAStorm(t *testing.T) {
	const writers = 4
	sandboxes := int64(1500)
	if testing.Short() {
		sandboxes = 240
	}
	s := &storm{world: newWorld(t, span{Subnet: "10.1.0.0/27"}), held: map[netip.Addr]ipam.Owner{}}
	s.left.Store(sandboxes)
	ctx, stop := context.WithCancel(t.Context())
	var reaping, writing sync.WaitGroup
	var released atomic.Int64
	s.policy() // now, so that neither run finds it half written
	for i := range 2 {
		reaper := *s.world
		reaper.state = s.path(fmt.Sprint("state-", i))
		reaping.Go(func() {
			for ctx.Err() == nil {
				released.Add(reaper.reapOnce())
			}
		})
	}
	for n := range writers {
		writing.Go(func() { s.write(n) })
	}
	writing.Wait()
	stop()
	reaping.Wait()
	released.Add(int64(s.run(0).Summary.Released))
	if left := s.world.left(pods, s.dead...); len(left) > 0 {
		t.Errorf("of sandboxes that are gone there are still %v", left)
	}
	for ip, of := range s.held {
		s.check(ip, of)
	}
	if files := len(s.content()); files != len(s.held)+2 {
		t.Errorf("%d files are left, want %d leases, the lock and the cursor", files, len(s.held))
	}
	t.Logf("%d sandboxes, %d of them dead, %d releases, %d ADDs found no address", sandboxes, len(s.dead), released.Load(), s.full.Load())
	if released.Load() == 0 {
		t.Error("nothing was released: the reapers were not at work")
	}
}

// reapOnce runs the reaper, and returns how many leases it released. A plugin may hold the
// lock longer than a run waits.
func (w *world) reapOnce() int64 {
	w.Helper()
	result, err := w.start().Wait()
	if err != nil || result.Report == nil || result.ExitCode != 0 && result.ExitCode != reap.ExitPartial {
		w.Errorf("run: exit code %d, %v\n%s", result.ExitCode, err, result.Stderr)
		return 0
	}
	return int64(result.Report.Summary.Released)
}

// write makes sandboxes, one after the other. Of eight, one stays, three get a DEL, and four end
// without one: two before the runtime listed them, one after that, and one whose DEL comes late, in
// competition with the reaper.
func (s *storm) write(writer int) {
	const kinds, stays, none, listed, late = 8, 0, 2, 3, 4
	var own []netip.Addr
	for n := s.left.Add(-1); n >= 0 && !s.Failed(); n = s.left.Add(-1) {
		of := sandbox(fmt.Sprintf("writer-%d-%d", writer, n))
		ip, ok := s.take(of)
		if !ok {
			continue
		}
		kind := int(n % kinds)
		switch kind {
		case none, none + kinds/2 + 1:
			s.die(ip, of)
			if kind == none {
				_ = os.Remove(s.entry(pods, of)) // the reaper's DEL removes it too
			}
			continue
		}
		s.list(of)
		s.try(s.age(pods, of, dead, ip))
		s.check(ip, of)
		switch kind {
		case listed, late:
			s.runtime.Remove(of.Sandbox)
			s.die(ip, of)
			if kind == late {
				s.try(s.del(s.Context(), pods, of))
			}
		case stays:
			own = append(own, ip)
			if len(own) < 3 {
				continue
			}
			ip, own = own[0], own[1:]
			s.mu.Lock()
			of = s.held[ip]
			s.mu.Unlock()
			fallthrough
		default:
			s.check(ip, of)
			s.drop(ip)
			s.try(s.del(s.Context(), pods, of))
			s.runtime.Remove(of.Sandbox)
		}
	}
}

// take gets an address for a sandbox. It fails the test if another live one has it.
func (s *storm) take(of ipam.Owner) (netip.Addr, bool) {
	ips, err := s.add(s.Context(), pods, of)
	if err != nil {
		if !strings.Contains(err.Error(), "no IP addresses available") {
			s.Errorf("ADD: %v", err)
		}
		s.full.Add(1)
		return netip.Addr{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, taken := s.held[ips[0]]; taken {
		s.Errorf("%s was given to %s, and %s has it", ips[0], of.Pod, other.Pod)
	}
	s.held[ips[0]] = of
	return ips[0], true
}

// drop records that no live sandbox has the address any more.
func (s *storm) drop(ip netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, ip)
}

// die makes the leases of a sandbox old, so that a run may release them at any time.
func (s *storm) die(ip netip.Addr, of ipam.Owner) {
	s.drop(ip)
	s.mu.Lock()
	s.dead = append(s.dead, of)
	s.mu.Unlock()
	s.try(s.age(pods, of, dead, ip))
}

// try fails the test on an error, and lets the storm go on.
func (s *storm) try(err error) {
	if err != nil {
		s.Error(err)
	}
}

// check fails the test unless the live sandbox has its lease.
func (s *storm) check(ip netip.Addr, of ipam.Owner) {
	content, err := os.ReadFile(s.lease(pods, ip.String()))
	if err != nil || string(content) != of.Sandbox+"\r\n"+of.Interface {
		s.Errorf("%s of %s is %q, %v", ip, of.Pod, content, errors.Unwrap(err))
	}
}
