package report

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A page fits into a comment, and says how many lines did not: the lines on the page and
// those left out are all lines.
func TestPageHasItsSizeAndSaysWhatWasCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.SampledFrom([]string{"n", "_", "\u202e", "é", "@"}).Draw(t, "character"), rapid.IntRange(1, 300).Draw(t, "size"))
		r := drawReport(t)
		for i := range r.Entries {
			r.Entries[i].Owner.Pod = text
		}
		for range rapid.IntRange(0, 60).Draw(t, "warnings") {
			r.Warnings = append(r.Warnings, text)
		}
		for range rapid.IntRange(0, 60).Draw(t, "backends") {
			r.Backends = append(r.Backends, reaper.BackendReport{Name: "b", Message: text})
		}
		page := printed(t, Options{Format: "markdown", All: true}, r)
		if len(page) > 60<<10 {
			t.Fatalf("%d bytes", len(page))
		}
		want := 0 // rows and folds
		for _, table := range chatTables(r, true) {
			want += len(table.rows) + len(table.folds)
		}
		got := 0
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| ---") && !strings.HasPrefix(line, "| IP ") && !strings.HasPrefix(line, "| POOL ") && !strings.HasPrefix(line, "| BACKEND ") {
				got++
			}
		}
		warnings := strings.Count(page, "**Warning:** ")
		cut := 0
		if found := regexp.MustCompile(`… ([0-9,]+) lines? left out`).FindStringSubmatch(page); found != nil {
			cut, _ = strconv.Atoi(strings.ReplaceAll(found[1], ",", ""))
		}
		if shown, all := got+warnings, want+len(r.Warnings); shown+cut < all || cut > 2*(all-shown) {
			t.Fatalf("%d lines are shown, and %d said to be left out, of %d", shown, cut, all)
		}
		if !strings.HasPrefix(page, "**0 leaked: ") || !strings.Contains(page, "dry run: ") || strings.Count(page, "<details>") != strings.Count(page, "</details>") {
			t.Fatalf("the page lacks its first or last line, or the end of a table:\n%s", page)
		}
	})
}

// The pools that run dry first are first. A pool that is nearly full is not said to be full.
func TestFullestPoolsAreFirst(t *testing.T) {
	r := emptyReport()
	for i := range 15 {
		r.Pools = append(r.Pools, reaper.PoolReport{Name: fmt.Sprint("p", i), Usage: reaper.Usage{Capacity: big.NewInt(1000), Used: 10 * i, Free: big.NewInt(int64(1000 - 10*i))}})
	}
	r.Pools[7].Used, r.Pools[7].Free = 999, big.NewInt(1)
	r.Pools = append(r.Pools, reaper.PoolReport{Name: "unknown", Usage: reaper.Usage{Used: 5000}})
	table := fullestPools(r)
	if len(table.rows) != 10 || table.rows[0][0] != "p7" || table.rows[0][4] != "99%" || table.rows[1][0] != "p14" || table.title != "The 10 fullest of 16 pools" {
		t.Errorf("%s\n%q", table.title, table.rows)
	}
	r.Networks = []reaper.NetworkReport{{Name: "lan", Usage: reaper.Usage{Capacity: big.NewInt(10), Used: 10, Free: big.NewInt(0)}, Pools: []string{"p7"}}}
	if table := fullestPools(r); table.rows[0][0] != "lan" || table.rows[1][0] != "p14" || table.title != "The 10 fullest of 16 pools" {
		t.Errorf("with a network: %s\n%q", table.title, table.rows)
	}
	r.Networks[0].Closed = "disabled"
	if table := fullestPools(r); table.rows[0][0] != "p14" {
		t.Errorf("with a closed network: %q", table.rows)
	}
	r.Networks, r.Pools = nil, r.Pools[15:]
	if table := fullestPools(r); table.title != "" || table.rows[0][4] != "unknown" {
		t.Errorf("%s\n%q", table.title, table.rows)
	}
}
