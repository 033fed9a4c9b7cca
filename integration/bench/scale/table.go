package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// table prints the median turns.
func table(out io.Writer, all []measured) error {
	fmt.Fprintf(out, "\n%s; the turn with the median wall time\n\n", machine())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "pods\tpart\tprogram\twall s\tCPU s\tMiB\tserver CPU s\tserver MiB\treads\twrites\treleased\tleft\t/s\twall/ip-reaper\t")
	for _, m := range all {
		for _, way := range m.ways {
			c := way.median()
			bound := ""
			if c.stopped { // its wall time is a lower bound
				bound = ">"
			}
			reads, writes := c.asked()
			fmt.Fprintf(w, "%d\t%s\t%s\t%s%.1f\t%.1f\t%d\t%.1f\t%d\t%d\t%d\t%s\t%s\t\n",
				m.size, way.part, way.name, bound, c.wall.Seconds(), c.cpu.Seconds(), c.peak>>10,
				c.server.cpu.Seconds(), c.server.peak>>10, reads, writes, released(c), m.ratio(way.part, c))
		}
	}
	return w.Flush()
}

// released returns how much was released, how much was left, and how much was released per second.
func released(c cost) string {
	if c.released == 0 {
		return "\t\t"
	}
	return fmt.Sprintf("%d\t%d\t%.0f", c.released, c.left, c.rate())
}

// ratio compares the wall time with ip-reaper's in the same part, or the time per release if both
// release: not every process finished.
func (m measured) ratio(part string, c cost) string {
	i := slices.IndexFunc(m.ways, func(r wayResult) bool { return r.part == part && r.name == reaperWay })
	if i < 0 {
		return ""
	}
	other := m.ways[i].median()
	if c.released > 0 && other.released > 0 {
		return fmt.Sprintf("%.2f", other.rate()/c.rate())
	}
	return fmt.Sprintf("%.2f", c.wall.Seconds()/other.wall.Seconds())
}
