package policy

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

var (
	//go:embed example.yaml
	example string
	//go:embed schema.json
	schema []byte
)

// exampleBackends is the line of example.yaml below which the backends go.
const exampleBackends = "#backends:\n"

// Example returns a commented policy file that loads as Default. It includes the
// examples of the backends' settings, in the given order.
func Example(known []Known) []byte {
	before, after, _ := strings.Cut(example, exampleBackends)
	var text strings.Builder
	text.WriteString(before + exampleBackends)
	for _, k := range known {
		exampler, ok := settings(known, k.Name).(Exampler)
		if !ok {
			fmt.Fprintf(&text, "#  %s: {enabled: auto}\n", k.Name)
			continue
		}
		fmt.Fprintf(&text, "#  %s:\n#    enabled: auto\n", k.Name)
		for line := range strings.Lines(string(exampler.Example())) {
			text.WriteString(strings.TrimRight("#    "+line, " \n") + "\n")
		}
	}
	return []byte(text.String() + after)
}

// Schema returns the JSON schema, draft 2020-12, of a policy file, with the
// settings of the backends. It fails if a backend's settings return something
// other than a JSON object as their schema.
//
// The schema is for editors; Load decides. The schema cannot detect a pattern
// that matches no backend, what YAML allows and JSON does not, or what only a
// Validator knows.
func Schema(known []Known) ([]byte, error) {
	backends := make(map[string]any, len(known))
	for _, k := range known {
		part, err := backendSchema(k)
		if err != nil {
			return nil, fmt.Errorf("schema of the settings of backend %s: %w", k.Name, err)
		}
		backends[k.Name] = part
	}
	parts, err := json.Marshal(backends)
	if err != nil {
		return nil, err
	}
	whole := bytes.Replace(schema, []byte(`"properties": {}`), append([]byte(`"properties": `), parts...), 1)
	var indented bytes.Buffer
	err = json.Indent(&indented, whole, "", "  ")
	return indented.Bytes(), err
}

// backendSchema returns the schema of a backend's settings. They may have any
// field if they are not a Schemer.
func backendSchema(k Known) (map[string]any, error) {
	keywords := make(map[string]any)
	settings := settings([]Known{k}, k.Name)
	schemer, ok := settings.(Schemer)
	if ok {
		if err := json.Unmarshal(schemer.Schema(), &keywords); err != nil {
			return nil, err
		}
	}
	properties := map[string]any{
		"enabled": map[string]any{"description": "Whether the backend is used.", "$ref": "#/$defs/switch", "default": "auto"},
	}
	if fields, ok := keywords["properties"].(map[string]any); ok {
		maps.Copy(properties, fields)
	}
	keywords["properties"] = properties
	keywords["type"] = "object"
	keywords["description"] = strings.ReplaceAll(k.Summary, "`", "")
	if settings == nil || ok {
		keywords["additionalProperties"] = false
	}
	return keywords, nil
}
