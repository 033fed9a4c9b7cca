package report

import (
	"encoding/csv"
	"io"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// printCSV prints one record for each entry, as RFC 4180 says but for the ends of the
// lines, which are line feeds.
func printCSV(w io.Writer, v reportView) error {
	var records [][]string
	switch all := v.tables(true); {
	case v.records != nil:
		records = v.records()
	case len(all) > 0:
		last := all[len(all)-1]
		records = append([][]string{last.heading}, last.rows...)
	}
	c := csv.NewWriter(w)
	for _, record := range records {
		for i, text := range record {
			record[i] = inert(printable.Line(text))
		}
		if err := c.Write(record); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// inert returns a cell that a spreadsheet does not take for a formula: a cell that begins
// as one gets an apostrophe before it.
func inert(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@＝＋－＠", []rune(cell)[0]) {
		return "'" + cell
	}
	return cell
}

var ownerHeading = []string{"namespace", "pod", "sandbox", "interface", "node"}

// recordsOf returns the entries of a run with all of their fields. The field refused has
// the limits that refused the release of the entry.
func recordsOf(r reaper.Report) [][]string {
	heading := append([]string{"backend", "pool", "key", "ip"}, ownerHeading...)
	heading = append(heading, "verdict", "reason", "leaked", "outcome", "note", "evidence", "firstSeen", "due", "error", "refused")
	records := [][]string{heading}
	var limits []string
	for _, refusal := range r.Result.Refused {
		limits = append(limits, refusal.Limit)
	}
	for _, e := range r.Entries {
		leaked, refused := "false", ""
		if e.Leaked {
			leaked = "true"
		}
		if e.Verdict == reaper.Orphaned {
			refused = strings.Join(limits, " ")
		}
		records = append(records, []string{
			e.Backend, e.Pool, e.Key, e.IP, e.Owner.Namespace, e.Owner.Pod, e.Owner.Sandbox, e.Owner.Interface, e.Owner.Node,
			e.Verdict.String(), string(e.Reason), leaked, string(e.Outcome), e.Note, evidenceOf(e),
			clock(e.FirstSeen), clock(e.Due), e.Error, refused,
		})
	}
	return records
}

// recordsOfRestore returns the entries of a restore with all of their fields.
func recordsOfRestore(r reaper.RestoreReport) [][]string {
	heading := append([]string{"backend", "pool", "key", "ip"}, ownerHeading...)
	records := [][]string{append(heading, "outcome", "error")}
	for _, e := range r.Entries {
		records = append(records, []string{
			e.Backend, e.Pool, e.Key, e.IP, e.Owner.Namespace, e.Owner.Pod, e.Owner.Sandbox, e.Owner.Interface, e.Owner.Node,
			string(e.Outcome), e.Error,
		})
	}
	return records
}
