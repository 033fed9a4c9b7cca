package report

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// templates are the formats that have an argument, in the order of the help. They apply to
// the JSON form of the report.
var templates = []template{
	{"jsonpath", "TEMPLATE", parseJSONPath},
	{"custom-columns", "SPEC", parseColumns},
}

// A template is a format that the user writes.
type template struct {
	name     string // of --output, up to the equals sign
	argument string // for the help
	parse    func(argument string) (printer, error)
}

// A printer prints a view.
type printer func(io.Writer, reportView) error

// Check returns an error if a format does not exist, or if its argument cannot be parsed.
func Check(name string) error {
	_, err := formatOf(name)
	return err
}

// formatOf returns the format of a name and, behind an equals sign, its argument.
func formatOf(name string) (format, error) {
	if i := slices.IndexFunc(formats, func(f format) bool { return f.name == name }); i >= 0 {
		return formats[i], nil
	}
	kind, argument, _ := strings.Cut(name, "=")
	i := slices.IndexFunc(templates, func(t template) bool { return t.name == kind })
	if i < 0 {
		return format{}, fmt.Errorf("unknown format %q", name)
	}
	show, err := printer(nil), errors.New("it needs an argument")
	if argument != "" {
		show, err = templates[i].parse(argument)
	}
	if err != nil {
		return format{}, fmt.Errorf("%s: %w", kind, err)
	}
	return format{name: kind, print: show}, nil
}
