package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A surveyor is a store with fixed pools and networks.
type surveyor struct {
	ipam.Backend
	networks []ipam.Network
	err      error
}

func (s surveyor) Survey(context.Context, []ipam.Pool) ([]ipam.Network, error) {
	return s.networks, s.err
}

// spansOf returns the addresses from first to last.
func spansOf(first, last string) ipam.Spans {
	return ipam.NewSpans(ipam.Span{First: netip.MustParseAddr(first), Last: netip.MustParseAddr(last)})
}

// overlapping are the pools 10.0.0.0/29 and 10.0.0.0/28, which overlap. The live pod web has
// 10.0.0.1. The others are leaked; 10.0.0.2 is in both pools.
func overlapping() []ipam.Pool {
	at := func(key, ip string) ipam.Allocation {
		a := webAllocation()
		a.Key, a.IP, a.Token = key, netip.MustParseAddr(ip), "t"+key
		if key != "1" {
			a.Owner.Pod = other
		}
		return a
	}
	pool := func(name, in string, all ...ipam.Allocation) ipam.Pool {
		return ipam.Pool{Name: name, Range: netip.MustParsePrefix(in), Capacity: big.NewInt(8), Allocations: all}
	}
	return []ipam.Pool{
		pool("small", "10.0.0.0/29", at("1", "10.0.0.1"), at("2", "10.0.0.2"), at("7", "10.0.0.7")),
		pool("large", "10.0.0.0/28", at("2", "10.0.0.2"), at("9", "10.0.0.9")),
	}
}

// dryRun makes a dry run over the pools of a store that says this about its networks.
func dryRun(t *testing.T, networks []ipam.Network, failure error) report.Report {
	t.Helper()
	h := newHarness(surveyor{fixedStore(overlapping()), networks, failure})
	h.pods.Add(showing(web, ip1))
	h.policy.DryRun = new(true)
	return h.run(t)
}

// A network counts the addresses of its pools, each one once. Those that pods can get and
// no pool has are free; its pools have their part of them.
func TestNetworksCountTheAddressesThatPodsGet(t *testing.T) {
	got := dryRun(t, []ipam.Network{{
		Name: "net", Range: netip.MustParsePrefix("10.0.0.0/28"), Known: true,
		Usable: spansOf("10.0.0.1", "10.0.0.9").Without(spansOf("10.0.0.7", "10.0.0.7")), Pools: []string{"small", "large", "no such pool"},
	}}, nil)
	usage := func(capacity int64, used, live, leaked int, free int64) report.Usage {
		full := int((capacity - free) * 100 / capacity)
		return report.Usage{Capacity: big.NewInt(capacity), Used: used, Live: live, Leaked: leaked, Free: big.NewInt(free), FullPercent: &full}
	}
	asNumbers := cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })
	equal(t, "networks", got.Networks, []report.NetworkReport{{
		Backend: "fixed", Name: "net", Range: "10.0.0.0/28", Usage: usage(8, 4, 1, 3, 5), Pools: []string{"small", "large"},
	}}, asNumbers, cmpopts.IgnoreFields(report.NetworkReport{}, "Usable"))
	equal(t, "small", got.Pools[0].Usage, usage(6, 3, 1, 2, 4), asNumbers)
	equal(t, "large", got.Pools[1].Usage, usage(8, 2, 0, 2, 6), asNumbers)
}

// Attachments that hand out different parts of a network fill these alone. Those that hand out the same share one.
func TestPartsOfANetworkAreCountedByAttachment(t *testing.T) {
	low, high := spansOf("10.0.0.1", "10.0.0.2"), spansOf("10.0.0.7", "10.0.0.8")
	n := ipam.Network{
		Name: "net", Range: netip.MustParsePrefix("10.0.0.0/28"), Known: true, Pools: []string{"small", "large"},
		Usable: ipam.NewSpans(append(slices.Clone(low), high...)...),
		Parts:  map[string]ipam.Spans{"shop/low": low, "shop/high": high, "shop/lower": low},
	}
	figures := func(parts []report.AttachedPart) (lines []string) {
		for _, p := range parts {
			lines = append(lines, fmt.Sprint(p.Attachments, p.Ranges, " ", p.Used, " of ", p.Capacity, ", ", p.Leaked, " leaked, ", p.Free, " free"))
		}
		return lines
	}
	equal(t, "parts", figures(dryRun(t, []ipam.Network{n}, nil).Networks[0].Parts), []string{
		"[shop/high] [10.0.0.7 to 10.0.0.8] 1 of 2, 1 leaked, 1 free",
		"[shop/low shop/lower] [10.0.0.1 to 10.0.0.2] 2 of 2, 1 leaked, 0 free",
	})
	n.Known = false
	equal(t, "parts of what is not known", figures(dryRun(t, []ipam.Network{n}, nil).Networks[0].Parts), []string(nil))
	n.Known = true
	for i := range 200 {
		n.Parts[fmt.Sprintf("shop/%d", i)] = spansOf("10.0.0.1", fmt.Sprintf("10.0.1.%d", i))
	}
	equal(t, "too many parts", figures(dryRun(t, []ipam.Network{n}, nil).Networks[0].Parts), []string(nil))
}

// What is not known is null, and what is closed has nothing free (promise 11).
func TestNetworksAreNotFreeWithoutProof(t *testing.T) {
	known := ipam.Network{Name: "net", Known: true, Usable: spansOf("10.0.0.0", "10.0.0.15"), Pools: []string{"small", "large"}}
	for _, tt := range []struct {
		name     string
		change   func(*ipam.Network)
		capacity string
		free     string
	}{
		{"known", func(*ipam.Network) {}, "16", "12"},
		{"unknown", func(n *ipam.Network) { n.Known = false }, "<nil>", "<nil>"},
		{"closed", func(n *ipam.Network) { n.Closed = "disabled" }, "16", "0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := known
			tt.change(&n)
			got := dryRun(t, []ipam.Network{n}, nil)
			one := got.Networks[0]
			equal(t, "capacity, free", [2]string{one.Capacity.String(), one.Free.String()}, [2]string{tt.capacity, tt.free})
			equal(t, "used", one.Used, 4)
			if tt.capacity == "<nil>" && (got.Pools[0].Capacity != nil || got.Pools[0].Free != nil) {
				t.Errorf("the pools of an unknown network have %v of %v free", got.Pools[0].Free, got.Pools[0].Capacity)
			}
		})
	}
}

// A network may have more addresses in a pool that could not be read (promise 11).
func TestNetworksBesideAnUnreadPoolHaveAnUnknownNumberFree(t *testing.T) {
	broken := errors.New("broken")
	steps := []step{{err: &ipam.PoolError{Pool: "third", Err: broken}}, {pool: overlapping()[0]}, {pool: overlapping()[1]}}
	h := newHarness(surveyor{scriptedStore{name: "fixed", steps: steps}, []ipam.Network{{
		Name: "net", Known: true, Usable: spansOf("10.0.0.0", "10.0.0.15"), Pools: []string{"small", "large"},
	}}, nil})
	h.pods.Add(showing(web, ip1))
	h.policy.DryRun = new(true)
	report, err := reaper.Run(t.Context(), h.options())
	if err == nil || !strings.Contains(err.Error(), "broken") {
		t.Fatalf("the run ended with %v, want the error of the pool", err)
	}
	if n := report.Networks[0]; !n.Partial || n.Free != nil || n.Capacity.Int64() != 16 {
		t.Errorf("partial is %v, and %v of %v are free, want that to be unknown", n.Partial, n.Free, n.Capacity)
	}
}

// Promise 9. No release depends on a survey that works.
func TestSurveyThatFailsIsAWarning(t *testing.T) {
	got := dryRun(t, nil, errors.New("ippools is forbidden"))
	equal(t, "warnings", got.Warnings, []string{"fixed: the usage of some networks is unknown: ippools is forbidden"})
	equal(t, "networks", got.Networks, []report.NetworkReport{})
	equal(t, "planned", got.Summary.Planned, 4)
}

// A tenant may write any number of attachments, and each may be a network without a pool. The
// report has 1,000 of these and every network that has a pool, and says what it left out.
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

// A run remembers how many addresses a network has after its releases, and a later one is told.
func TestUseOfANetworkIsRememberedWithoutWhatWasReleased(t *testing.T) {
	h, m := memoryHarness(t, "live-1", "gone-1", "gone-2")
	h.policy.Limits.MaxFraction = new(1.0)
	h.backends = []ipam.Backend{surveyor{m.Backend(), []ipam.Network{{Name: "net", Range: netip.MustParsePrefix("10.0.0.0/24"), Pools: []string{"a"}}}, nil}}
	equal(t, "released", h.run(t).Summary.Released, 2)
	h.policy.DryRun = new(true)
	equal(t, "uses", h.run(t).Uses, []ledger.Use{{At: noon.Unix(), Used: map[string]int{"memory net": 1}}})
}
