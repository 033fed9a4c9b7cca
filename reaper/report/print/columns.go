package print

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// A customColumn is a heading and the path of its cells within an entry.
type customColumn struct {
	heading string
	path    *jsonpath.JSONPath
}

// parseColumns returns a printer of columns that the user chose, such as
// IP:.ip,POD:.owner.pod. It prints one row for each of the report's entries.
func parseColumns(spec string) (printer, error) {
	var columns []customColumn
	for part := range strings.SplitSeq(spec, ",") {
		heading, text, ok := strings.Cut(part, ":")
		if !ok || heading == "" || text == "" {
			return nil, fmt.Errorf("%q is not a column: write HEADING:PATH, such as IP:.ip", part)
		}
		path, err := pathOf(braced(text))
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", heading, err)
		}
		columns = append(columns, customColumn{heading, path})
	}
	return func(w io.Writer, v view) error { return printColumns(w, v, columns) }, nil
}

// braced returns a path as JSONPath has it: kubectl accepts .ip, ip and {.ip}.
func braced(path string) string {
	if strings.HasPrefix(path, "{") {
		return path
	}
	return "{." + strings.TrimPrefix(path, ".") + "}"
}

// printColumns prints a heading, and a row for each entry of the report.
func printColumns(w io.Writer, v view, columns []customColumn) error {
	value, err := plain(v.value)
	if err != nil {
		return err
	}
	rows := make([][]string, 1)
	for _, c := range columns {
		rows[0] = append(rows[0], cell(c.heading))
	}
	report, _ := value.(map[string]any)
	entries, _ := report["entries"].([]any)
	for _, e := range entries {
		row := make([]string, len(columns))
		for i, c := range columns {
			text, err := c.cell(e)
			if err != nil {
				return err
			}
			row[i] = cell(text)
		}
		rows = append(rows, row)
	}
	return printLines(w, aligned(rows))
}

// cell returns the cell of one entry. As with kubectl, <none> stands for no value, and a
// comma between several values.
func (c customColumn) cell(entry any) (string, error) {
	found, err := c.path.FindResults(entry)
	if err != nil {
		return "", fmt.Errorf("column %s: %w", c.heading, err)
	}
	var values []string
	for _, value := range slices.Concat(found...) {
		values = append(values, fmt.Sprint(value))
	}
	if len(values) == 0 {
		return "<none>", nil
	}
	return strings.Join(values, ","), nil
}
