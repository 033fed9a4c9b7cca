package reapertest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Valid returns an error unless the JSON form of a report is valid by the schema of its kind, which
// is in the folder docs/schema of the project, and has no field that the schema lacks.
func Valid(root string, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	said, _ := value.(map[string]any)
	kind, _ := said["kind"].(string)
	if kind == "" {
		return errors.New("it has no kind")
	}
	data, err := os.ReadFile(filepath.Join(root, "docs", "schema", kind+".json"))
	if err != nil {
		return err
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	closed(schema)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource(kind, schema); err != nil {
		return err
	}
	compiled, err := compiler.Compile(kind)
	if err != nil {
		return err
	}
	return compiled.Validate(value)
}

// closed has the objects in a schema admit the fields that it names, and no others.
func closed(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if s["properties"] != nil {
			s["additionalProperties"] = false
		}
		for _, part := range s {
			closed(part)
		}
	case []any:
		for _, part := range s {
			closed(part)
		}
	}
}
