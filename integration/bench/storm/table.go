package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A result is a storm under its name.
type result struct {
	name string
	tally
}

// tell prints the results of the storms, and then what a table cannot say.
func tell(out io.Writer, results []result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, cell func(tally) any) {
		for _, r := range results {
			fmt.Fprintf(w, "%v\t", cell(r.tally))
		}
		fmt.Fprintf(w, " %s\n", name)
	}
	for _, r := range results {
		fmt.Fprintf(w, "%s\t", r.name)
	}
	fmt.Fprintln(w, " ")
	row("ADDs", func(t tally) any { return t.adds })
	row("ADDs that found no address", func(t tally) any { return t.full })
	row("ADDs and DELs that failed otherwise", func(t tally) any { return len(t.refused) })
	row("pods that came back under their name", func(t tally) any { return t.comebacks })
	row("DELs", func(t tally) any { return t.dels })
	row("crashes", func(t tally) any { return t.crashes })
	row("late DELs of those", func(t tally) any { return t.lateDels })
	row("runs of the reaper", func(t tally) any { return t.runs })
	for _, code := range []int{reap.ExitPartial, reap.ExitLimit, reap.ExitLocked} {
		row(fmt.Sprintf("of them that exited with %d", code), func(t tally) any { return t.exits[code] })
	}
	row("released", func(t tally) any { return t.released })
	row("looks at the store", func(t tally) any { return t.looks })
	row("sandboxes in them", func(t tally) any { return t.checked })
	row("pods at the end", func(t tally) any { return t.living })
	row("left of others then", func(t tally) any { return kinds(t.leaked) })
	row("left when those are deleted, after the last run", func(t tally) any { return kinds(t.left) })
	row("reservations seen under a tombstone", func(t tally) any { return t.retiring })
	row("reservations lost by the plugin's own doing", func(t tally) any { return len(t.forgotten) })
	row("addresses given twice for it", func(t tally) any { return len(t.shared) })
	row("violations", func(t tally) any { return len(t.violations) })
	row("wall time", func(t tally) any { return t.wall.Round(100 * time.Millisecond) })
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		list(out, r.name+": ADDs and DELs failed otherwise", r.refused)
		list(out, r.name+": runs complained", r.complaints)
		list(out, r.name+": lost by the plugin's own doing", r.forgotten)
		list(out, r.name+": given twice for it", r.shared)
		list(out, r.name+": VIOLATIONS", r.violations)
	}
	return nil
}

// kinds are counts by kind, in one cell.
func kinds(counts map[string]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		if counts[kind] != 0 {
			all = append(all, fmt.Sprintf("%d %s", counts[kind], kind))
		}
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

// list prints lines under a title, if there are any, and the same ones once.
func list(out io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", title)
	times := map[string]int{}
	for _, line := range lines {
		times[line]++
	}
	for _, line := range slices.Compact(slices.Sorted(slices.Values(lines))) {
		fmt.Fprintf(out, "  %dx %s\n", times[line], line)
	}
}
