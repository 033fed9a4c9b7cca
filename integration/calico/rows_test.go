package calico_test

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A row is something that Calico stores, and what the reaper must make of it. Many rows share one
// cluster.
type row struct {
	name string

	// set brings it about, for a pod with a unique name. It returns the addresses, or the handles,
	// to check.
	set func(s *fixture, pod string) []string

	// want is verdict, reason and outcome: one for all that set returns, or one for each, separated
	// by commas.
	want string
}

// A planted row is a row that was brought about.
type planted struct {
	row
	names []string
}

// plant brings the rows about.
func (s *fixture) plant(rows []row) []planted {
	s.Helper()
	all := make([]planted, len(rows))
	for i, r := range rows {
		all[i] = planted{r, r.set(s, fmt.Sprintf("pod-%d", i))}
	}
	return all
}

// prove runs the reaper and compares what the report says about the rows with what they want, and
// what blocks and handles then hold with what was released.
func (s *fixture) prove(rows []planted) {
	s.Helper()
	held := s.held()
	r := s.mustReap(reap.ExitDone, releaseNow)
	got := lines(r)
	for _, row := range rows {
		wants := strings.Split(row.want, ", ")
		for i, name := range row.names {
			want := wants[min(i, len(wants)-1)]
			if got[name] != want {
				s.Errorf("%s: %s is %q, want %q", row.name, name, got[name], want)
			}
			if delete(got, name); strings.HasSuffix(want, " released") {
				delete(held, name)
			}
		}
	}
	if len(got) > 0 {
		s.Errorf("no row has %v", got)
	}
	if diff := cmp.Diff(held, s.held()); diff != "" {
		s.Errorf("allocated in blocks (-want +got):\n%s", diff)
	}
	s.wantCounts()
}

// pod creates a pod of the shop, with or without a sandbox. It is on the fixture's node: a pod on
// another node has nothing to do with an allocation there.
func (s *fixture) pod(name string, opts ...cluster.PodOption) {
	s.Helper()
	_, err := s.Cluster.CreatePod(s.Context(), shop, name, append([]cluster.PodOption{cluster.OnNode(node)}, opts...)...)
	s.must(err)
}

// add makes the plugin give a sandbox its addresses.
func (s *fixture) add(sandbox calico.Sandbox) []netip.Addr {
	s.Helper()
	ips, err := s.Add(s.Context(), sandbox)
	s.must(err)
	return ips
}

// leaks returns the address of a sandbox whose pod does not exist.
func leaks(s *fixture, pod string) []string {
	s.Helper()
	_, ip := s.leak(pod)
	return []string{ip.String()}
}

// shown returns the address of a sandbox whose pod shows only what the options say. A function
// makes the options, because they may need the address or the sandbox.
func shown(options func(sandbox calico.Sandbox, ip netip.Addr) []cluster.PodOption) func(*fixture, string) []string {
	return func(s *fixture, pod string) []string {
		s.Helper()
		sandbox, ip := s.leak(pod)
		s.pod(pod, options(sandbox, ip)...)
		return []string{ip.String()}
	}
}

// blockOf returns the block of an address from the fixture's pools.
func (s *fixture) blockOf(ip netip.Addr) netip.Prefix {
	bits := 26
	if ip.Is6() {
		bits = 122
	}
	return netip.PrefixFrom(ip, bits).Masked()
}

// editBlock writes the block of an address after edit has changed it.
func (s *fixture) editBlock(ip netip.Addr, edit func(map[string]any)) {
	s.Helper()
	s.must(s.Edit(s.Context(), calico.Block, s.BlockName(s.blockOf(ip)), edit))
}

// ordinal returns the position of an address in its block; blocks have no more than 64.
func (s *fixture) ordinal(ip netip.Addr) int {
	bytes := ip.AsSlice()
	return int(bytes[len(bytes)-1] & 63)
}

// share gives another address to the owner of this one.
func (s *fixture) share(ip netip.Addr) netip.Addr {
	s.Helper()
	var ordinal int
	s.editBlock(ip, func(b map[string]any) {
		queue := b["unallocated"].([]any)
		ordinal, b["unallocated"] = number(queue[0]), queue[1:]
		allocations := b["allocations"].([]any)
		allocations[ordinal] = allocations[s.ordinal(ip)]
		sequences := b["sequenceNumberForAllocation"].(map[string]any)
		sequences[fmt.Sprint(ordinal)] = sequences[fmt.Sprint(s.ordinal(ip))]
	})
	shared := s.blockOf(ip).Addr()
	for range ordinal {
		shared = shared.Next()
	}
	return shared
}
