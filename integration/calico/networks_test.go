package calico_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// planOnly is a policy that releases nothing.
const planOnly = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n"

// shown returns what "calicoctl ipam show --show-blocks" counts, by CIDR: all addresses,
// those in use, and the free ones.
func (s *fixture) shown() map[string][3]string {
	s.Helper()
	out, err := s.Calicoctl(s.Context(), "", "ipam", "show", "--show-blocks")
	s.must(err)
	all := make(map[string][3]string)
	for line := range strings.Lines(out) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !strings.Contains(cells[2], "/") {
			continue
		}
		all[strings.TrimSpace(cells[2])] = [3]string{figure(cells[3]), figure(cells[4]), figure(cells[5])}
	}
	return all
}

// figure returns a number from calicoctl, which has five digits, without its percentage.
func figure(cell string) string { return strings.Fields(cell)[0] }

// asShown returns a number as calicoctl prints it.
func asShown(n string) string {
	f, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return n
	}
	return fmt.Sprintf("%.5g", f)
}

// counted returns the same figures from a report.
func counted(r *reap.Report) map[string][3]string {
	all := make(map[string][3]string)
	for _, n := range r.Networks {
		all[n.Range] = [3]string{asShown(n.Capacity.String()), strconv.Itoa(n.Used), asShown(n.Free.String())}
	}
	for _, p := range r.Pools {
		all[p.Range] = [3]string{asShown(p.Capacity.String()), strconv.Itoa(p.Used), asShown(p.Free.String())}
	}
	return all
}

// Networks are as full as calicoctl says, including addresses outside blocks.
func TestNetworksAreAsFullAsCalicoctlSays(t *testing.T) {
	s := newFixture(t, calico.KubernetesT(t))
	s.must(s.ApplyPool(s.Context(), "small", netip.MustParsePrefix("10.33.0.0/29"), 29))
	for n := range 5 {
		s.leak(fmt.Sprint("gone-", n))
	}
	s.live("live")
	report := s.mustReap(reap.ExitDone, planOnly)
	if diff := cmp.Diff(s.shown(), counted(report)); diff != "" {
		s.Errorf("addresses, in use, free (-calicoctl +report):\n%s", diff)
	}
	if len(report.Networks) != 3 || slices.ContainsFunc(report.Pools, func(p reap.Pool) bool {
		return !slices.ContainsFunc(report.Networks, func(n reap.Network) bool { return slices.Contains(n.Pools, p.Name) })
	}) {
		s.Errorf("networks %+v, want three with all of the pools %+v", report.Networks, report.Pools)
	}
}
