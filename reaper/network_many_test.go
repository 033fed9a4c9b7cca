package reaper_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A tenant may write any number of attachments, and each may be a network without a pool. The
// report has 1,000 of these, each network that has a pool, and says what it left out.
func TestReportHasFewNetworksWithoutAPool(t *testing.T) {
	networks := make([]ipam.Network, 0, 1003)
	for i := range 1002 {
		networks = append(networks, ipam.Network{Name: fmt.Sprint("tenant-", i)})
	}
	networks = append(networks, ipam.Network{Name: "ours", Pools: []string{"pool"}})
	pool := poolOf(webAllocation())
	pool.Range = netip.MustParsePrefix("10.0.0.0/24")
	h := newHarness(surveyor{Backend: fixedStore{pool}, networks: networks})
	h.policy.DryRun = new(true)
	h.pods.Add(showing(web, ip1))
	report := h.run(t)
	equal(t, "networks", len(report.Networks), 1001)
	equal(t, "the last one", report.Networks[1000].Name, "ours")
	if !strings.Contains(fmt.Sprint(report.Warnings), "fixed: 2 networks that have no pool are not in the report") {
		t.Errorf("warnings %q", report.Warnings)
	}
}
