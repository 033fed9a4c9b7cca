package print

import (
	"bytes"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// usageOf returns the usage of a network with these addresses; of an unknown number if
// capacity is negative.
func usageOf(used int, free, capacity int64) report.Usage {
	u := report.Usage{Used: used}
	if capacity >= 0 {
		full := 100
		if capacity > 0 {
			full = int((capacity - free) * 100 / capacity)
		}
		u.Capacity, u.Free, u.FullPercent = big.NewInt(capacity), big.NewInt(free), &full
	}
	return u
}

// The fullest network comes first, then what is not known, and what is closed comes last. So do the pools of a run,
// of which one may be full although a run releases more of another.
func TestPoolsAreOrderedByFullness(t *testing.T) {
	r := report.Report{Leaked: &report.Leaked{}, Layout: report.Layout{Networks: []report.NetworkReport{
		{Name: "closed", Usage: report.Usage{Used: 90, Free: new(big.Int)}, Closed: "disabled"},
		{Name: "unknown", Usage: usageOf(5, 0, -1)},
		{Name: "half", Usage: usageOf(50, 50, 100)},
		{Name: "nothing to give", Usage: usageOf(0, 0, 0)},
		{Name: "almost full", Usage: usageOf(999, 1, 1000)},
		{Name: "full", Usage: usageOf(9, 0, 9)},
	}}}
	var text bytes.Buffer
	if err := WritePools(&text, Options{Format: "table", Limit: 1}, r); err != nil {
		t.Fatal(err)
	}
	want := "full nothing almost half unknown closed"
	var names []string
	for _, line := range strings.Split(text.String(), "\n")[4:10] {
		names = append(names, strings.Fields(line)[0])
	}
	if strings.Join(names, " ") != want {
		t.Errorf("the order is %v, want %v:\n%s", names, want, text.String())
	}
	for i, n := range r.Networks {
		p := report.PoolReport{Name: n.Name, Usage: n.Usage, AllocatedBefore: 9 + i}
		p.Leaked = 1 + p.Used
		r.Pools = append(r.Pools, p)
	}
	names = nil
	for _, row := range poolTable(r, false).rows {
		names = append(names, strings.Fields(row[0])[0])
	}
	if strings.Join(names, " ") != want {
		t.Errorf("the order of a run is %v, want %v", names, want)
	}
}

// Promise 7: without the pods, it is not known what the addresses are used for. That is not 0. Nor is a range
// known that a store does not say.
func TestUseOfAddressesIsUnknownWithoutThePods(t *testing.T) {
	row := usageTable(poolsReport{Networks: []report.NetworkReport{{Name: "lan", Usage: usageOf(9, 1, 10)}}}, Options{}).rows[0]
	want := []string{"", "lan", "unknown", "90%", "9", "unknown", "unknown", "unknown", "unknown", "1", "10", ""}
	if !slices.Equal(row, want) {
		t.Errorf("the row is %q, want %q", row, want)
	}
}

// A ranking without all of its rows says how many are left out. Pools without a network
// are as many as the rows.
func TestPoolsSayWhatIsLeftOut(t *testing.T) {
	r := report.Report{Leaked: &report.Leaked{}, Run: report.RunInfo{Selection: judge.Selection{Namespaces: []string{"shop"}}}}
	for _, name := range []string{"a", "b", "c"} {
		r.Pools = append(r.Pools, report.PoolReport{Backend: "calico", Name: name, Usage: usageOf(1, 1, 2)})
		r.Entries = append(r.Entries, report.Entry{Leaked: true, Address: &report.Address{Fate: report.Due}, Owner: ipam.EntryOwner{Node: name}, Outcome: report.Kept})
	}
	var text bytes.Buffer
	if err := WritePools(&text, Options{Format: "table", Top: "nodes", Limit: 1}, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"… and 2 more pools without a network: --all shows each\n", "… and 2 more with 2: --limit shows more\n",
		"each row counts a whole network, not only what is of namespace shop\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing:\n%s", want, text.String())
		}
	}
}
