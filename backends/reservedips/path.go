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

// FieldPath leads to fields of an object, as a JSONPath of kubectl's kind:
// .spec.ip, or {.spec.ips[*]}. It is one expression and no template. A dot in a
// name is escaped: .metadata.annotations.example\.com/ip.
type FieldPath string

// Parse understands the path. What it returns may be used concurrently. Where a
// field is missing it finds nothing, and that is no error; an index that a list
// does not have is one. The error of Parse itself says what the path must be,
// and the caller which path it is.
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
	// At an empty list, [*] forgets all lists that come after it (evalArray returns
	// early), and what stands there would not be kept. The fields of a list are all
	// its items, and forget nothing.
	path := jsonpath.New("path").AllowMissingKeys(true)
	return path, path.Parse(strings.ReplaceAll(text, "[*]", ".*"))
}

var (
	// pathForm is the form of a path: one expression that begins at a field or a
	// list. The schema has it too.
	pathForm = regexp.MustCompile(`^([{][$]?[.\[][^{}]*[}]|[$]?[.\[][^{}]*)$`)

	// partOfList is a part of a list, such as [1:], also among several indexes. At an
	// empty list it has the same fault as [*].
	partOfList = regexp.MustCompile(`\[[-0-9, ]*:`)

	// bareDot is how a name in quotes begins that has a dot in it. The parser
	// takes such a dot for the step to the next field.
	bareDot = regexp.MustCompile(`[\[,] *'([^'.\\]|\\.)*[.]`)
)

// checkSteps refuses what the parser accepts although it leads to no field: a
// constant, which only an operand of a filter can be, and what fails whenever
// it is used.
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
				// The parser takes it for [0], which would leave out all the others.
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

// operators are those of a filter; "exists" is the parser's word for none.
var operators = []string{"exists", "==", "!=", "<", "<=", ">", ">="}
