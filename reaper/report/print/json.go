package print

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func printJSON(w io.Writer, v view) error { return jsonForm.write(w, v.value) }

// jsonForm: a line break is never part of a JSON text, so the place is a field of the report.
var jsonForm = textForm{
	encode: encodeJSON, part: encodeEntries, printable: printable.JSON,
	place: "\n  \"entries\": []", open: "\n  \"entries\": [", between: ",", shut: "\n  ]",
}

// encodeJSON returns a value and a line break.
func encodeJSON(value any) ([]byte, error) {
	text, err := json.MarshalIndent(value, "", "  ")
	return append(text, '\n'), err
}

// encodeEntries returns a list as it stands in a report, without its brackets.
func encodeEntries(list any) ([]byte, error) {
	text, err := json.MarshalIndent(list, "  ", "  ")
	return bytes.TrimSuffix(bytes.TrimPrefix(text, []byte("[")), []byte("\n  ]")), err
}
