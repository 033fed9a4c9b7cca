package policy

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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

// Example returns a commented policy file that loads as Default. It has the
// examples of the backends' settings, in this order.
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

// enabledSchema is the schema of the field that every backend has.
const enabledSchema = `"enabled": {"description": "Whether the backend is used.", "$ref": "#/$defs/switch", "default": "auto"}`

// Schema returns the JSON schema, draft 2020-12, of a policy file, with the
// settings of the backends. The error says that the settings of a backend return
// no JSON object for their schema.
//
// The schema is for editors, and Load is the judge: the schema cannot tell a
// malformed glob, a pattern that matches no backend, a duration that is too long,
// nor what only a Validator knows.
func Schema(known []Known) ([]byte, error) {
	backends := make([]string, len(known))
	for i, k := range known {
		part, err := backendSchema(k)
		if err != nil {
			return nil, fmt.Errorf("schema of the settings of backend %s: %w", k.Name, err)
		}
		backends[i] = fmt.Sprintf("%q: %s", k.Name, part)
	}
	whole := bytes.Replace(schema, []byte(`"properties": {}`), []byte(`"properties": {`+strings.Join(backends, ", ")+`}`), 1)
	var indented bytes.Buffer
	err := json.Indent(&indented, whole, "", "  ")
	return indented.Bytes(), err
}

// backendSchema returns the schema of a backend's settings. Where they are no
// Schemer, they may have any field.
func backendSchema(k Known) (string, error) {
	keywords := make(map[string]json.RawMessage)
	settings := settings([]Known{k}, k.Name)
	schemer, ok := settings.(Schemer)
	if ok {
		if err := json.Unmarshal(schemer.Schema(), &keywords); err != nil {
			return "", err
		}
	}
	var properties map[string]json.RawMessage
	if fields, ok := keywords["properties"]; ok {
		if err := json.Unmarshal(fields, &properties); err != nil {
			return "", fmt.Errorf("properties: %w", err)
		}
	}
	all := enabledSchema
	if len(properties) > 0 { // as they are written, to keep their order
		all += ", " + strings.TrimPrefix(strings.TrimSpace(string(keywords["properties"])), "{")
	} else {
		all += "}"
	}
	keywords["properties"] = json.RawMessage("{" + all)
	keywords["type"] = json.RawMessage(`"object"`)
	if settings == nil || ok {
		keywords["additionalProperties"] = json.RawMessage("false")
	}
	summary, err := json.Marshal(strings.ReplaceAll(k.Summary, "`", ""))
	if err != nil {
		return "", err
	}
	keywords["description"] = summary
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(keywords)) {
		parts = append(parts, fmt.Sprintf("%q: %s", name, keywords[name]))
	}
	return "{" + strings.Join(parts, ", ") + "}", nil
}
