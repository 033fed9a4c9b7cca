package print

import (
	"encoding/json"
	"io"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// printJSON prints the value of a view.
func printJSON(w io.Writer, v view) error {
	text, err := json.MarshalIndent(v.value, "", "  ")
	if err != nil {
		return err
	}
	_, err = printable.JSON(w).Write(append(text, '\n'))
	return err
}
