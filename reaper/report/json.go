package report

import (
	"encoding/json"
	"io"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func printJSON(w io.Writer, v reportView) error {
	e := json.NewEncoder(printable.JSON(w))
	e.SetIndent("", "  ")
	return e.Encode(v.value)
}
