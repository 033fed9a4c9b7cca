package policy

import _ "embed"

var (
	//go:embed example.yaml
	example string
	//go:embed schema.json
	schema string
)

// Example returns a commented policy file that loads as Default.
func Example() []byte { return []byte(example) }

// Schema returns the JSON schema, draft 2020-12, of a policy file. It is for
// editors, and Load is the judge: the schema does not know the names of
// backends, and cannot tell a malformed glob or a duration that is too long.
func Schema() []byte { return []byte(schema) }
