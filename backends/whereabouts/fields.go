package whereabouts

import (
	"encoding/json"
	"errors"

	kjson "sigs.k8s.io/json"
)

// decodeKnown decodes an object that is stored at a path. It returns the path of a field that
// into does not have: the first by name; empty if it has them all.
func decodeKnown(stored json.RawMessage, at string, into any) (unknown string, err error) {
	others, err := kjson.UnmarshalStrict(stored, into)
	if err != nil {
		return "", err
	}
	for _, other := range others {
		name := other.Error()
		if field, ok := errors.AsType[kjson.FieldError](other); ok {
			name = field.FieldPath()
		}
		if path := at + "." + name; unknown == "" || path < unknown {
			unknown = path
		}
	}
	return unknown, nil
}
