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
// backends other than calico, and cannot tell a malformed glob, a duration that
// is too long, a port or an IPv6 address that is none, a path that begins like
// one and is none, or a resource that is named twice.
func Schema() []byte { return []byte(schema) }
