package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// tellBlocks prints what each of the programs took, and how that compares with the
// first.
func tellBlocks(out io.Writer, title string, s sandboxSize, costs []blockCost) error {
	fmt.Fprintf(out, "\n%s\n\n", title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, cell func(blockCost) string) {
		for _, c := range costs {
			fmt.Fprintf(w, "%s\t", cell(c))
		}
		fmt.Fprintf(w, " %s\n", name)
	}
	row("", func(c blockCost) string { return c.name })
	for _, kind := range []struct {
		title string
		of    func(blockCost) map[string]int
	}{
		{"requests to the API server", func(c blockCost) map[string]int { return c.requests }},
		{"operations of Calico's etcd", func(c blockCost) map[string]int { return c.etcd }},
	} {
		all := map[string]bool{}
		for _, c := range costs {
			for request := range kind.of(c) {
				all[request] = true
			}
		}
		if len(all) == 0 {
			continue
		}
		for _, request := range slices.Sorted(maps.Keys(all)) {
			row(request, func(c blockCost) string { return fmt.Sprint(kind.of(c)[request]) })
		}
		row(kind.title, func(c blockCost) string { return fmt.Sprint(sum(kind.of(c))) })
		row("", func(blockCost) string { return "" })
	}
	row(fmt.Sprintf("addresses released of %d", s.leaked), func(c blockCost) string { return fmt.Sprint(c.released) })
	row("handles left without an address", func(c blockCost) string { return fmt.Sprint(c.handles) })
	row("requests and operations an address", func(c blockCost) string { return fmt.Sprintf("%.2f", c.each()) })
	row("of ip-reaper's", func(c blockCost) string { return fmt.Sprintf("%.1fx", c.each()/costs[0].each()) })
	row("wall time", func(c blockCost) string { return c.wall.Round(10 * time.Millisecond).String() })
	row("milliseconds an address", func(c blockCost) string { return fmt.Sprintf("%.2f", c.pace()) })
	row("of ip-reaper's", func(c blockCost) string { return fmt.Sprintf("%.1fx", c.pace()/costs[0].pace()) })
	return w.Flush()
}

// each is how many requests and operations were made for an address.
func (c blockCost) each() float64 { return float64(sum(c.requests)+sum(c.etcd)) / float64(c.released) }

// pace is how long an address took, in milliseconds.
func (c blockCost) pace() float64 {
	return float64(c.wall) / float64(time.Millisecond) / float64(c.released)
}

func sum(counts map[string]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}
