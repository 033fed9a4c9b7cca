package reservedips

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// A FieldPath leads to fields of an object. It is a JSONPath as in kubectl:
// .spec.ip, or {.spec.ips[*]}. It is one expression and no template. A dot in a
// name is escaped: .metadata.annotations.example\.com/ip.
type FieldPath string

// Parse parses the path. The result is safe for concurrent use. It finds nothing if
// a field is missing, which is no error. An index beyond the end of a list is an
// error. The error of Parse says what the path must be; the caller must add which
// path it is.
func (p FieldPath) Parse() (*jsonpath.JSONPath, error) {
	text := string(p)
	switch {
	case !pathForm.MatchString(text):
		return nil, errors.New("must be one JSONPath, such as .spec.ip or {.spec.ips[*]}")
	case bareDot.MatchString(text):
		return nil, errors.New(`must have a backslash before a dot in a name, as in ['example\.com/ip']`)
	case partOfList.MatchString(text):
		return nil, errors.New("must lead to one item of a list, as [0], or to all of them, as [*]")
	}
	if text[0] != '{' {
		text = "{" + text + "}"
	}
	tree, err := jsonpath.Parse("path", text)
	if err == nil {
		err = checkSteps(tree.Root, false)
	}
	if err != nil {
		return nil, fmt.Errorf("must be a JSONPath: %w", err)
	}
	// For an empty list, [*] drops all lists that come after it (evalArray returns
	// early), and their addresses would not be kept. The fields of a list are all
	// of its items, and .* drops nothing.
	path := jsonpath.New("path").AllowMissingKeys(true)
	return path, path.Parse(strings.ReplaceAll(text, "[*]", ".*"))
}

var (
	// pathForm is the form of a path: one expression that begins at a field or a
	// list. The schema has the same form.
	pathForm = regexp.MustCompile(`^([{][$]?[.\[][^{}]*[}]|[$]?[.\[][^{}]*)$`)

	// partOfList is a slice of a list, such as [1:], also among several indexes.
	// For an empty list it has the same fault as [*].
	partOfList = regexp.MustCompile(`\[[-0-9, ]*:`)

	// bareDot is the beginning of a name in quotes with a dot in it. The parser
	// takes such a dot for the step to the next field.
	bareDot = regexp.MustCompile(`[\[,] *'([^'.\\]|\\.)*[.]`)
)

// checkSteps returns an error for a step that the parser accepts although it leads
// to no field: a constant, which only an operand of a filter can be, or a step that
// always fails.
func checkSteps(list *jsonpath.ListNode, operand bool) error {
	for _, step := range list.Nodes {
		var err error
		switch step := step.(type) {
		case *jsonpath.ListNode:
			err = checkSteps(step, operand)
		case *jsonpath.FieldNode:
			if step.Value == "" {
				err = errors.New("a dot without a field")
			}
		case *jsonpath.ArrayNode:
			if start, end := step.Params[0], step.Params[1]; !start.Known && end.Derived {
				// The parser takes it for [0], which would drop all other items.
				err = errors.New("nothing in [], all items are [*]")
			}
		case *jsonpath.WildcardNode, *jsonpath.RecursiveNode:
		case *jsonpath.UnionNode:
			for _, one := range step.Nodes {
				err = cmp.Or(err, checkSteps(one, operand))
			}
		case *jsonpath.FilterNode:
			if !slices.Contains(operators, step.Operator) {
				err = fmt.Errorf("no operator %s, there are == != < <= > >=", step.Operator)
			}
			err = cmp.Or(err, checkSteps(step.Left, true), checkSteps(step.Right, true))
		case *jsonpath.TextNode, *jsonpath.IntNode, *jsonpath.FloatNode, *jsonpath.BoolNode:
			if !operand {
				err = errors.New("a value where a field belongs")
			}
		default:
			err = errors.New("a word without a dot before it")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// operators are the operators of a filter. "exists" is the parser's word for no
// operator.
var operators = []string{"exists", "==", "!=", "<", "<=", ">", ">="}
