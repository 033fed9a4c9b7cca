package print

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// printNames prints addresses, one a line.
func printNames(w io.Writer, v view) error {
	for _, name := range v.names() {
		if _, err := fmt.Fprintln(w, printable.Line(name)); err != nil {
			return err
		}
	}
	return nil
}

// namesOf returns the addresses that the run released or, in a dry run, would release. If
// the plan was refused, a dry run would release none.
func namesOf(r report.Report) []string {
	var names []string
	for _, e := range r.Entries {
		if e.Outcome == report.Released || e.Outcome == report.Planned && len(r.Result.Refused) == 0 {
			names = append(names, e.IP)
		}
	}
	return addresses(names)
}

// namesOfRestore returns the addresses that are back or, in a dry run, would be.
func namesOfRestore(r report.RestoreReport) []string {
	var names []string
	for _, e := range r.Entries {
		if e.Outcome == report.Restored || e.Outcome == report.Restorable {
			names = append(names, e.IP)
		}
	}
	return addresses(names)
}

// addresses sorts addresses and returns each once. It leaves out empty ones.
func addresses(names []string) []string {
	slices.SortFunc(names, compareIPs)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// compareIPs orders addresses by their value. Any other text is behind them.
func compareIPs(a, b string) int {
	one, errOne := netip.ParseAddr(a)
	other, errOther := netip.ParseAddr(b)
	switch {
	case errOne == nil && errOther == nil:
		return one.Compare(other)
	case errOne == nil:
		return -1
	case errOther == nil:
		return 1
	default:
		return strings.Compare(a, b)
	}
}
