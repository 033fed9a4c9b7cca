package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// table prints the medians.
func (r *results) table(out io.Writer) error {
	fmt.Fprintf(out, "\n%s; medians\n\n", r.Machine)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "pods\tpart\tprogram\twall s\tCPU s\tMiB\tserver CPU s\tserver MiB\treads\twrites\treleased\tleft\t/s\twall/ip-reaper\t")
	for _, m := range r.Sizes {
		for _, way := range m.Ways {
			c := median(way.Turns)
			fmt.Fprintf(w, "%d\t%s\t%s\t%s%.1f\t%.1f\t%d\t%.1f\t%d\t%d\t%d\t%s\t%s\t\n",
				m.Pods, way.Part, way.Name, stopped(c), c.Wall.Seconds(), c.CPU.Seconds(), c.Peak>>10,
				c.Server.CPU.Seconds(), c.Server.Peak>>10, c.reads(), c.writes(), released(c),
				m.ratio(way.Part, c))
		}
	}
	return w.Flush()
}

// stopped marks a time that is a lower bound.
func stopped(c cost) string {
	if c.Stopped {
		return ">"
	}
	return ""
}

// released is how much was released, how much was left, and how much was released in a
// second.
func released(c cost) string {
	if c.Released == 0 {
		return "\t\t"
	}
	return fmt.Sprintf("%d\t%d\t%.0f", c.Released, c.Left, c.rate())
}

// ratio compares a wall time with that of ip-reaper in the same part, and the time of one
// release if both release: not every process came to its end.
func (m measured) ratio(part string, c cost) string {
	other, ok := m.of(part, reaperWay)
	switch {
	case !ok:
		return ""
	case c.Released > 0 && other.Released > 0:
		return fmt.Sprintf("%.2f", other.rate()/c.rate())
	default:
		return fmt.Sprintf("%.2f", c.Wall.Seconds()/other.Wall.Seconds())
	}
}
