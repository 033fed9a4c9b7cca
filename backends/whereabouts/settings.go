package whereabouts

import (
	_ "embed"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Settings are backends.whereabouts of a policy. They also apply to Overlapping: both backends
// read what the same plugin writes.
type Settings struct {
	// UnknownFields is empty if the policy does not set it, which means HoldUnknownFields.
	UnknownFields UnknownFields `json:"unknownFields,omitzero"`
}

// UnknownFields says what happens to an allocation with a field unknown to this program.
type UnknownFields string

// The values of UnknownFields.
const (
	// HoldUnknownFields keeps the allocation: a later version of the plugin may use the field
	// to state that the address is in use.
	HoldUnknownFields UnknownFields = "hold"

	// IgnoreUnknownFields treats the allocation as if it did not have the field.
	IgnoreUnknownFields UnknownFields = "ignore"
)

var (
	//go:embed schema.json
	schemaPart []byte
	//go:embed example.yaml
	examplePart []byte
)

// Schema implements policy.Schemer.
func (*Settings) Schema() []byte { return schemaPart }

// Example implements policy.Exampler.
func (*Settings) Example() []byte { return examplePart }

// Validate implements policy.Validator.
func (s *Settings) Validate(at *field.Path) field.ErrorList {
	known := []UnknownFields{HoldUnknownFields, IgnoreUnknownFields}
	if s.UnknownFields == "" || slices.Contains(known, s.UnknownFields) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at.Child("unknownFields"), string(s.UnknownFields), known)}
}
