// Package print prints the report of a run or of a restore, and other views of them.
package print

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// formats are the output formats, in the order of the help. To add one, write the function that
// prints a view, and add a line here.
var formats = []format{
	{name: "table", print: printTable},
	{name: "wide", all: true, print: printWide},
	{name: "json", print: printJSON},
	{name: "yaml", print: printYAML},
	{name: "name", print: printNames},
	{name: "html", all: true, print: printHTML},
	{name: "jsonpath", parse: parseJSONPath},
}

// A format is one way to print a view.
type format struct {
	name  string // the value of --output, up to an equals sign
	all   bool   // the format always has the allocations that are in use
	print printer

	// parse is set if the user writes a template after the name. It applies to the JSON form of
	// the report.
	parse func(template string) (printer, error)
}

// formatOf returns the format of a name and, after an equals sign, its template.
func formatOf(name string) (format, error) {
	kind, template, cut := strings.Cut(name, "=")
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == kind && (f.parse != nil || !cut) })
	if i < 0 {
		return format{}, fmt.Errorf("unknown format %q", name)
	}
	f := formats[i]
	if f.parse == nil {
		return f, nil
	}
	err := errors.New("it needs a template")
	if template != "" {
		f.print, err = f.parse(template)
	}
	if err != nil {
		return format{}, fmt.Errorf("%s: %w", kind, err)
	}
	return f, nil
}

// Check returns an error if a format does not exist, or if its template cannot be parsed.
func Check(name string) error {
	_, err := formatOf(name)
	return err
}

// Formats returns the names of the formats that need no template, sorted.
func Formats() []string {
	var names []string
	for _, f := range formats {
		if f.parse == nil {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}

// HistoryFormats returns the names of the formats of a history, sorted.
func HistoryFormats() []string {
	return slices.DeleteFunc(Formats(), func(name string) bool { return name == "html" })
}

// LookFormats returns the formats of explanations and pools, the default first.
func LookFormats() []string { return []string{"table", "json", "yaml"} }

// Usages returns the formats as they are typed, such as jsonpath=TEMPLATE.
func Usages() []string {
	var names []string
	for _, f := range formats {
		name := f.name
		if f.parse != nil {
			name += "=TEMPLATE"
		}
		names = append(names, name)
	}
	return names
}
