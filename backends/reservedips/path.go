package reservedips

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

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

// leads reports whether the text has the beginning of a path. Otherwise it is a value itself.
func (p FieldPath) leads() bool { return p != "" && strings.ContainsRune(".[{$", rune(p[0])) }

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
