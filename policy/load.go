package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// MaxSize is the largest policy that Load reads, in bytes: some 2,000 rules. A ConfigMap
// could hold four times as much.
const MaxSize = 256 << 10

// An Error has every mistake that Load found in one policy.
type Error struct {
	// Messages are the mistakes, each with the path of its field if it has one.
	// Messages is never empty. A message may quote any text of the policy.
	Messages []string
}

// Error returns the messages, one per line.
func (e *Error) Error() string { return strings.Join(e.Messages, "\n") }

// Load reads one policy in YAML or JSON. A backend that is not known is a
// mistake. Load returns the complete, valid policy, or the zero Policy and an
// *Error.
//
// All mistakes are reported together, save that nothing is said about the
// fields of what is not one well-formed document of the supported apiVersion
// and kind.
func Load(data []byte, known []Known) (Policy, error) {
	raw, duplicates, err := toJSON(data)
	if err != nil {
		return Policy{}, mistakes([]string{err.Error()}, nil)
	}
	errs, err := checkHeader(raw)
	if err != nil {
		return Policy{}, mistakes([]string{err.Error()}, nil)
	}
	if len(errs) > 0 {
		return Policy{}, mistakes(duplicates, errs)
	}
	var p Policy
	d := decoder{known: known}
	errs = d.decode(raw, reflect.ValueOf(&p).Elem(), nil)
	p.setDefaults()
	errs = p.validate(names(known), errs)
	if len(errs) > 0 || len(duplicates) > 0 {
		return Policy{}, mistakes(duplicates, d.redact(errs))
	}
	return p, nil
}

// redact leaves out the values of the fields that are tagged as secret. A
// password may have been put where it does not belong, and messages go to a log.
func (d *decoder) redact(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		if slices.ContainsFunc(d.secrets, func(at string) bool { return within(err.Field, at) }) {
			err.BadValue = field.OmitValueType{}
		}
	}
	return errs
}

// mistakes returns messages and errs as one Error, without the users of URLs.
func mistakes(messages []string, errs field.ErrorList) *Error {
	for _, err := range errs {
		messages = append(messages, err.Error())
	}
	for i, m := range messages {
		messages[i] = urlUser.ReplaceAllString(m, "://...@")
	}
	return &Error{Messages: messages}
}

var urlUser = regexp.MustCompile(`(?s)://.*@`)

// toJSON returns the only document in data, which is a mapping, as JSON. It returns
// a message for each key that a mapping has twice. The JSON has the last value of
// such a key.
func toJSON(data []byte) (raw []byte, duplicates []string, err error) {
	if len(data) > MaxSize {
		return nil, nil, fmt.Errorf("policy has more than %d bytes", MaxSize)
	}
	raw, err = yaml.YAMLToJSONStrict(data)
	var duplicate *goyaml.TypeError
	if errors.As(err, &duplicate) {
		duplicates = duplicate.Errors
		raw, err = yaml.YAMLToJSON(data)
	}
	if err != nil {
		return nil, nil, err
	}
	// The parser stops at the end of the first document.
	var document any
	documents := goyaml.NewDecoder(bytes.NewReader(data))
	for range 2 {
		err = documents.Decode(&document)
	}
	switch {
	case !errors.Is(err, io.EOF):
		return nil, nil, errors.New("policy must be one YAML document, and has more")
	case string(raw) == "null":
		return nil, nil, fmt.Errorf("policy must not be empty: apiVersion must be %q and kind %q", APIVersion, Kind)
	case raw[0] != '{':
		return nil, nil, errors.New("policy must be a mapping")
	}
	return raw, duplicates, nil
}

// checkHeader checks only apiVersion and kind. In another kind of file, or in
// another version, every other field may have another meaning. It returns an error
// if the JSON cannot be decoded, for example if it is nested too deeply.
func checkHeader(raw []byte) (errs field.ErrorList, err error) {
	var fields map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &fields); err != nil {
		return nil, err
	}
	for _, h := range []struct{ name, want string }{{"apiVersion", APIVersion}, {"kind", Kind}} {
		switch got, ok := fields[h.name]; {
		case !ok || got == nil:
			errs = append(errs, field.Required(field.NewPath(h.name), fmt.Sprintf("must be %q", h.want)))
		case got != h.want:
			errs = append(errs, field.NotSupported(field.NewPath(h.name), got, []string{h.want}))
		}
	}
	return errs, nil
}
