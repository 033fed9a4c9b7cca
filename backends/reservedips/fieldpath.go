package reservedips

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// A fieldPath leads to a field of an object, or to none if its text is empty. It is safe for
// concurrent use.
type fieldPath struct {
	name string // its field in the policy
	text FieldPath
	path *jsonpath.JSONPath // nil if the text is empty
}

// parse parses the text, unless it is a TTL of all objects. The error says what the text must be.
func (p *fieldPath) parse() (err error) {
	switch {
	case p.text == "":
	case p.name != "ttl" || p.text.isPath():
		p.path, err = p.text.Parse()
	case !fixedTTL.MatchString(string(p.text)):
		err = errors.New("must be a JSONPath such as .spec.ttl, a duration such as 24h, or never")
	}
	return err
}

// String returns the name and the text of the path as in the policy.
func (p fieldPath) String() string { return p.name + " " + string(p.text) }

// mistake returns an error for a value of the field.
func (p fieldPath) mistake(value any, err error) error {
	// An object can be of any size.
	text := fmt.Sprintf("%.80s", fmt.Sprint(value))
	if s, ok := value.(string); ok {
		text = fmt.Sprintf("%.80q", s)
	}
	return fmt.Errorf("%v: %s %w", p, text, err)
}

// values returns all values of the field, with lists flattened. It omits nulls and
// empty strings. An index beyond the end of a list is an error.
func (p fieldPath) values(object any) ([]any, error) {
	if p.path == nil {
		return nil, nil
	}
	found, err := p.path.FindResults(object)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", p, err)
	}
	var all []any
	for _, results := range found {
		for _, result := range results {
			if result.IsValid() {
				all = appendValues(all, result.Interface())
			}
		}
	}
	return all, nil
}

// appendValues appends a value, or the elements of a list.
func appendValues(all []any, value any) []any {
	switch value := value.(type) {
	case nil:
	case []any:
		for _, one := range value {
			all = appendValues(all, one)
		}
	case string:
		if value != "" {
			all = append(all, value)
		}
	default:
		all = append(all, value)
	}
	return all
}

// value returns the one value of the field; nil if there is none. More than one
// value is an error.
func (p fieldPath) value(object any) (any, error) {
	all, err := p.values(object)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if len(all) > 1 {
		return nil, fmt.Errorf("%v leads to %d values, but must lead to at most one", p, len(all))
	}
	return all[0], nil
}

// A FieldPath leads to fields of an object. It is a JSONPath as in kubectl: .spec.ip, or
// {.spec.ips[*]}. It is one expression, not a template. A dot in a name is escaped:
// .metadata.annotations.example\.com/ip.
type FieldPath string

// Parse parses the path. The result is safe for concurrent use. It finds nothing if a field is
// missing, which is not an error. An index beyond the end of a list is one. The error of Parse
// says what the path must be; the caller must add which path it is.
func (p FieldPath) Parse() (*jsonpath.JSONPath, error) {
	text, inBraces := strings.CutPrefix(string(p), "{")
	if inBraces {
		text, inBraces = strings.CutSuffix(text, "}")
	}
	if inBraces != strings.HasPrefix(string(p), "{") || !pathForm.MatchString(text) {
		return nil, errors.New(`must be one JSONPath, such as .spec.ip, {.spec.ips[*]} or .spec.nets[?(@.name=="net1")].ip, ` +
			`with a backslash before a dot in a name`)
	}
	// For an empty list, [*] drops all lists that come after it (evalArray returns early), and
	// their addresses would not be kept. The fields of a list are its items, and .* drops
	// nothing.
	path := jsonpath.New("path").AllowMissingKeys(true)
	if err := path.Parse("{" + strings.ReplaceAll(text, "[*]", ".*") + "}"); err != nil {
		return nil, fmt.Errorf("must be a JSONPath: %w", err)
	}
	return path, nil
}

// isPath reports whether the text begins as a path does. Otherwise it is a value itself.
func (p FieldPath) isPath() bool { return p != "" && strings.ContainsRune(".[{$", rune(p[0])) }

// pathForm is the form of a path without its braces. The parser accepts more: a literal, which
// would be taken for the field's value; [], which it takes for [0]; a dot in quotes, which it
// takes for the next step; a slice such as [1:], which has the same fault as [*]; and operators
// that always fail.
var pathForm = func() *regexp.Regexp {
	const (
		name   = `([^\s.,=<>!&|\[\]{}()'"$@?*\\]|\\.)+`
		field  = `([.]{1,2}` + name + `|\['` + name + `'(, *'` + name + `')*\])`
		item   = `\[-?[0-9]+(, *-?[0-9]+)*\]`
		all    = `([.][*]|\[[*]\])`
		value  = `(true|false|-?[0-9]+([.][0-9]+)?|'[^'"\[\]{}\\]*'|"[^'"\[\]{}\\]*")`
		filter = `\[\?\(@(` + field + `|` + item + `)+( *(==|!=|<=?|>=?) *` + value + `)?\)\]`
	)
	return regexp.MustCompile(`^[$]?(` + field + `|` + item + `|` + all + `|` + filter + `)+$`)
}()
