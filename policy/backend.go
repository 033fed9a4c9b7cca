package policy

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Known is a backend that a policy may name.
type Known struct {
	Name    string
	Summary string // what the backend holds, in one line

	// Settings returns a new pointer to the struct into which the fields of
	// backends.<name> except enabled are decoded. Nil means that there are no
	// others. Fields are matched strictly by their json tags, at any depth. None
	// may be a secret: a policy is in a ConfigMap, and messages show values.
	//
	// The pointer may implement Validator, Schemer and Exampler.
	Settings func() any
}

// A Validator is settings that can be wrong even if each field decodes.
type Validator interface {
	// Validate returns the mistakes in the settings, which are at the path. It is
	// called if all fields of the policy could be decoded.
	Validate(at *field.Path) field.ErrorList
}

// A Schemer is settings with a part in the JSON schema of policies.
type Schemer interface {
	// Schema returns the keywords of the settings' schema as a JSON object, with
	// the fields in "properties". It may refer to the "$defs" of schema.json. The
	// caller adds type, description and enabled, and forbids other fields.
	Schema() []byte
}

// An Exampler is settings with a part in the example policy.
type Exampler interface {
	// Example returns the fields as lines of YAML, with their explanations. A
	// policy that has them must load.
	Example() []byte
}

// Backend is the settings of one backend. The zero value is the default.
type Backend struct {
	Enabled Switch `json:"enabled"`

	// Settings is the pointer that Known.Settings returned, decoded. Load sets it
	// for a backend that the policy names and that has settings; otherwise it is
	// nil.
	Settings any `json:"-"`
}

// UnmarshalJSON keeps the JSON as the settings: Load decodes it, because it knows the backend.
func (b *Backend) UnmarshalJSON(data []byte) error {
	b.Settings = json.RawMessage(bytes.Clone(data))
	return nil
}

// settings returns a backend's empty settings; nil if it has none.
func settings(known []Known, name string) any {
	for _, k := range known {
		if k.Name == name && k.Settings != nil {
			return k.Settings()
		}
	}
	return nil
}

// names returns the backends' names.
func names(known []Known) []string {
	var names []string
	for _, k := range known {
		names = append(names, k.Name)
	}
	return names
}
