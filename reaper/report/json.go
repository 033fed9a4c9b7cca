package report

import (
	"encoding/json"
	"io"
)

func printJSON(w io.Writer, v reportView) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v.value)
}
