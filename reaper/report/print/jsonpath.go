package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/client-go/util/jsonpath"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// parseJSONPath returns a printer for a JSONPath template of kubectl. As with kubectl, a
// field that does not exist prints nothing.
func parseJSONPath(text string) (printer, error) {
	path := jsonpath.New("template").AllowMissingKeys(true)
	if err := path.Parse(text); err != nil {
		return nil, err
	}
	return func(w io.Writer, v view) error {
		value, err := plain(v.value)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := path.Execute(&out, value); err != nil {
			return fmt.Errorf("jsonpath: %w", err)
		}
		_, err = printable.Lines(w).Write(out.Bytes())
		return err
	}, nil
}

// plain returns the JSON form of a report as maps and slices. Its texts are printable
// lines, so that none of them begins a line of the output.
func plain(report any) (any, error) {
	data, err := json.Marshal(report)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	return plainValue(value), nil
}

// plainValue replaces the texts and the numbers of a JSON value. An integer beyond 64 bits
// becomes its digits.
func plainValue(value any) any {
	switch value := value.(type) {
	case string:
		return printable.Line(value)
	case json.Number:
		if n, err := value.Int64(); err == nil {
			return n
		}
		return value.String()
	case []any:
		for i := range value {
			value[i] = plainValue(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = plainValue(value[key])
		}
	}
	return value
}
