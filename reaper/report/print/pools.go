package print

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A poolsReport is a report about pools. Its JSON form is a contract that users script
// against.
type poolsReport struct {
	APIVersion string                 `json:"apiVersion"`
	Kind       string                 `json:"kind"`
	Run        report.RunInfo         `json:"run"`
	Leaked     *report.Leaked         `json:"leaked"`
	Backends   []report.BackendReport `json:"backends"`
	Networks   []report.NetworkReport `json:"networks"` // the fullest one first
	Pools      []report.PoolReport    `json:"pools"`    // the fullest one first
	Findings   []report.Finding       `json:"findings"`
	Asking     []report.Asking        `json:"asking,omitempty"` // pods that wait
	Top        *ranking               `json:"top,omitempty"`
	Warnings   []string               `json:"warnings,omitempty"`
}

// viewOfPools returns the view of a report that says how full its networks and pools are, and
// with o.Top a ranking of the leaks.
func viewOfPools(r report.Report, o Options) view {
	p := poolsReport{
		APIVersion: r.APIVersion, Kind: "PoolsReport", Run: r.Run, Leaked: r.Leaked, Backends: r.Backends,
		Networks: slices.Clone(r.Networks), Pools: fullestFirst(r.Pools), Findings: r.Findings, Warnings: r.Warnings,
		Asking: slices.DeleteFunc(o.Asking, func(a report.Asking) bool { return !a.Waits }),
	}
	slices.SortStableFunc(p.Networks, func(a, b report.NetworkReport) int {
		return cmp.Or(byFullness(a.Usage, b.Usage), cmp.Compare(a.Name, b.Name))
	})
	if o.Top != "" {
		top := rank(r, o.Top)
		p.Top = &top
	}
	var waiting []string
	for _, a := range p.Asking {
		waiting = append(waiting, waitingLine(a))
	}
	return view{
		value: p,
		now:   r.Run.FinishedAt,
		head:  []notice{{text: r.BottomLine()}, {text: identity(r.Run)}},
		tables: func(bool) []table {
			all := []table{usageTable(p, o)}
			if p.Top != nil {
				all = append(all, p.Top.table(o.Limit))
			}
			return all
		},
		caveats:    r.Run.Caveats,
		warnings:   r.Warnings,
		conclusion: waiting,
	}
}

// fullestFirst returns pools in the order of byFullness.
func fullestFirst(pools []report.PoolReport) []report.PoolReport {
	return slices.SortedStableFunc(slices.Values(pools), func(a, b report.PoolReport) int { return byFullness(a.Usage, b.Usage) })
}

// byFullness orders the fullest first, then what is not known, and then what is closed.
func byFullness(a, b report.Usage) int {
	rank := func(u report.Usage) int {
		switch {
		case u.FullPercent != nil:
			return *u.FullPercent
		case u.Free == nil:
			return -1
		}
		return -2
	}
	order := cmp.Compare(rank(b), rank(a))
	if order == 0 && rank(a) >= 0 {
		order = a.Free.Cmp(b.Free)
	}
	return cmp.Or(order, cmp.Compare(b.Used, a.Used))
}

// usageTable returns a row for each network and, with o.All, one below it for each of its pools.
// Then come the pools without a network.
func usageTable(p poolsReport, o Options) table {
	t := table{heading: []string{"BACKEND", "NETWORK", "RANGE", "FULL", "USED", "LIVE", "LEAKED", "PROTECTED", "OTHER", "FREE", "CAPACITY", "NOTE"},
		spare: []string{"RANGE", "BACKEND", "PROTECTED", "OTHER", "LIVE"}}
	row := func(backend, name, in string, u report.Usage, note string) {
		cells := []string{backend, name, cmp.Or(in, unknown), percent(u), printable.Thousands(u.Used)}
		if p.Leaked == nil { // the pods are unknown, and so is what the addresses are used for
			cells = append(cells, unknown, unknown, unknown, unknown)
		} else {
			cells = append(cells, printable.Thousands(u.Live), printable.Thousands(u.Leaked), printable.Thousands(u.Protected), printable.Thousands(u.Other))
		}
		t.rows = append(t.rows, append(cells, number(u.Free), number(u.Capacity), joined(byNameOf(u), lostOf(u), note)))
	}
	networks := make(map[[2]string]int) // the index of the network of a pool, by backend and name
	for i, n := range p.Networks {
		for _, pool := range n.Pools {
			networks[[2]string{n.Backend, pool}] = i
		}
	}
	below := make([][]report.PoolReport, len(p.Networks))
	var alone []report.PoolReport
	for _, pool := range p.Pools {
		if i, ok := networks[[2]string{pool.Backend, pool.Name}]; ok {
			below[i] = append(below[i], pool)
		} else {
			alone = append(alone, pool)
		}
	}
	for i, n := range p.Networks {
		note := ""
		switch {
		case n.Closed != "":
			note = "closed: " + n.Closed
		case n.Foreign:
			note = foreign
		case n.Partial:
			note = "a pool of the backend could not be read"
		}
		if len(n.Attachments) > 0 {
			note = joined("attached by "+printable.Some(n.Attachments), note)
		}
		if n.Blocks != nil && len(n.Pools) > 0 {
			note = joined(note, "blocks: "+blocksOf(*n.Blocks))
		}
		var full []string
		for _, part := range n.Parts {
			if part.Free != nil && part.Free.Sign() == 0 {
				full = append(full, part.Attachments...)
			}
		}
		if len(full) > 0 {
			note = joined(note, "full for "+printable.Some(full))
		}
		row(n.Backend, n.Name, n.Range, n.Usage, note)
		if o.All {
			for _, pool := range below[i] {
				row("", "  "+pool.Name, pool.Range, pool.Usage, pool.ProtectedBy)
			}
		}
	}
	for i, pool := range alone {
		if o.All || i < o.Limit {
			row(pool.Backend, "pool "+pool.Name, pool.Range, pool.Usage, pool.ProtectedBy)
		}
	}
	if len(t.rows) == 0 {
		t.say("no networks and no pools are known")
	}
	if left := len(alone) - o.Limit; left > 0 && !o.All {
		t.say("… and %s without a network: --all shows each", printable.Counted(left, "more pool"))
	}
	if only := p.Run.Selection.String(); only != "" && len(t.rows) > 0 {
		t.say("each row counts a whole network, not only what is of %s", only)
	}
	return t
}

// joined joins those of the notes that say something.
func joined(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
}

// blocksOf says how many blocks of a network have room, and who may take an address of which.
func blocksOf(b report.Blocks) string {
	text := fmt.Sprintf("%s with room, %s full", printable.Thousands(b.Room), printable.Thousands(b.Full))
	if b.Missing > 0 {
		text += fmt.Sprintf(", %s of missing nodes (%s)", printable.Thousands(b.Missing), printable.Some(b.MissingNodes))
	}
	text += ", " + number(b.Unclaimed) + " not taken"
	if b.MayBorrow != nil && !*b.MayBorrow {
		text += ", no node may borrow"
	}
	if b.NodesWithoutRoom != nil && *b.NodesWithoutRoom > 0 {
		text += ", no room for " + printable.Counted(*b.NodesWithoutRoom, "node")
	}
	return text
}

// byNameOf says how many live addresses are those of pods that show others.
func byNameOf(u report.Usage) string {
	if u.ByName == 0 {
		return ""
	}
	return printable.Thousands(u.ByName) + " live only by name: their pods show others"
}

// lostOf says which addresses no pool has that are not free either.
func lostOf(u report.Usage) string {
	var lost []string
	if u.Blocked > 0 {
		lost = append(lost, printable.Thousands(u.Blocked)+" blocked by reservations")
	}
	if u.Unrecorded > 0 {
		lost = append(lost, printable.Thousands(u.Unrecorded)+" shown by pods and not recorded")
	}
	return strings.Join(lost, ", ")
}

// percent returns how full a place is.
func percent(u report.Usage) string {
	switch {
	case u.FullPercent != nil:
		return strconv.Itoa(*u.FullPercent) + "%"
	case u.Free == nil:
		return unknown
	default:
		return "closed"
	}
}

// number returns a number of addresses that may be unknown, in a short form beyond 49 bits, as in IPv6.
func number(n *big.Int) string {
	switch {
	case n == nil:
		return unknown
	case n.BitLen() < 50:
		return printable.Thousands(int(n.Int64()))
	default:
		return new(big.Float).SetInt(n).Text('g', 3)
	}
}
