package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// MaxSize is the largest policy that Load reads, in bytes: some 2,000 rules. A ConfigMap
// could hold four times as much.
const MaxSize = 256 << 10

// An Error lists the mistakes that Load found in one policy.
type Error struct {
	// Messages are the mistakes, each with the path of its field if it has one.
	// Messages is never empty. A message may quote any text of the policy.
	Messages []string

	// NotYAML says that the text is no mapping in YAML, so no version of the program understands it.
	// Any other mistake may be none for a newer version.
	NotYAML bool
}

// Error returns the messages, one per line.
func (e *Error) Error() string { return strings.Join(e.Messages, "\n") }

// Load reads one policy in YAML or JSON. An unknown backend is a mistake. Load returns the
// complete, valid policy, or the zero Policy and an *Error.
//
// The *Error has all mistakes, unless the document is not YAML, has a key twice, or is of another
// kind or version: every other field may then mean something else. A value is not checked if a
// field within it has a mistake.
func Load(data []byte, known []Known) (Policy, error) {
	raw, mistake := toJSON(data)
	if mistake != nil {
		return Policy{}, refuse(mistake)
	}
	var fields map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &fields); err != nil { // such as one that is nested too deeply
		return Policy{}, refuse(&Error{Messages: []string{err.Error()}})
	}
	var p Policy
	errs := checkHeader(fields)
	if len(errs) == 0 {
		errs = append(blanks(fields, nil), p.decode(fields, known)...)
		p.setDefaults()
		errs = append(errs, apart(p.validate(names(known)), errs)...)
	}
	if len(errs) == 0 {
		return p, nil
	}
	mistake = new(Error)
	for _, err := range errs {
		mistake.Messages = append(mistake.Messages, err.Error())
	}
	return Policy{}, refuse(mistake)
}

// refuse returns the Error without the userinfo of URLs: a password may have been put where it does
// not belong, and messages go to a log.
func refuse(e *Error) *Error {
	for i, m := range e.Messages {
		e.Messages[i] = urlUser.ReplaceAllString(m, "://...@")
	}
	return e
}

var urlUser = regexp.MustCompile(`(?s)://.*@`)

// toJSON returns the only document in data, a mapping, as JSON, or an Error that says why it cannot.
// Each key that a mapping has twice gets its own message.
func toJSON(data []byte) ([]byte, *Error) {
	if len(data) > MaxSize {
		return nil, &Error{Messages: []string{fmt.Sprintf("policy is larger than %d bytes", MaxSize)}}
	}
	var document any
	raw, err := yaml.YAMLToJSONStrict(data)
	if twice := new(goyaml.TypeError); errors.As(err, &twice) {
		return nil, &Error{Messages: twice.Errors}
	}
	if err != nil { // JSON does not have each value of YAML, such as .nan
		return nil, &Error{Messages: []string{cmp.Or(tabbed(data, err), err.Error())}, NotYAML: goyaml.Unmarshal(data, &document) != nil}
	}
	// The parser stops at the end of the first document.
	documents := goyaml.NewDecoder(bytes.NewReader(data))
	for range 2 {
		err = documents.Decode(&document)
	}
	switch {
	case !errors.Is(err, io.EOF):
		return nil, &Error{Messages: []string{"policy must be a single YAML document, and is several"}}
	case string(raw) == "null":
		message := fmt.Sprintf("policy must not be empty: apiVersion must be %q and kind %q", APIVersion, Kind)
		return nil, &Error{Messages: []string{message}, NotYAML: true}
	case raw[0] != '{':
		return nil, &Error{Messages: []string{"policy must be a mapping"}, NotYAML: true}
	}
	return raw, nil
}

// The parser's errors about a tab in the indentation, and how such a line begins.
var (
	tabError  = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?found (?:a tab character|character that cannot start any token)`)
	tabIndent = regexp.MustCompile(`^[ -]*\t`)
)

// tabbed returns the message for a tab in the indentation; empty if err is about something else.
func tabbed(data []byte, err error) string {
	found := tabError.FindStringSubmatch(err.Error())
	if found == nil {
		return ""
	}
	number, _ := strconv.Atoi(cmp.Or(found[1], "1")) // the parser omits line 1
	lines := bytes.Split(data, []byte("\n"))
	if number > len(lines) || !tabIndent.Match(lines[number-1]) {
		return ""
	}
	return fmt.Sprintf("line %d: YAML forbids tabs for indentation, use spaces", number)
}

// checkHeader checks only apiVersion and kind.
func checkHeader(fields map[string]any) (errs field.ErrorList) {
	for _, h := range []struct{ name, want string }{{"apiVersion", APIVersion}, {"kind", Kind}} {
		switch got, ok := fields[h.name]; {
		case !ok || got == nil:
			errs = append(errs, field.Required(field.NewPath(h.name), fmt.Sprintf("must be %q", h.want)))
		case got != h.want:
			errs = append(errs, field.NotSupported(field.NewPath(h.name), got, []string{h.want}))
		}
	}
	return errs
}
