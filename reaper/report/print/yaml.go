package print

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// printYAML prints the fields of printJSON in the same order.
func printYAML(w io.Writer, v view) error { return yamlForm.write(w, v.value) }

// yamlForm: the encoder breaks no text into lines, so the place is a field of the report.
var yamlForm = textForm{
	encode: encodeYAML,
	part: func(some any) ([]byte, error) {
		text, err := encodeYAML(map[string]any{"entries": some})
		return bytes.TrimPrefix(text, []byte("entries:\n")), err
	},
	printable: printable.YAML, place: "\nentries: []\n", open: "\nentries:\n",
}

// encodeYAML returns a value as YAML, by way of its JSON.
func encodeYAML(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	root, err := yamlNode(d)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	err = errors.Join(e.Encode(root), e.Close())
	return text.Bytes(), err
}

// yamlNode returns the next JSON value as YAML. It does not read the JSON by the
// YAML parser, which turns large integers into floats and refuses some characters.
func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	node := &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(token)}
	switch token := token.(type) {
	case json.Delim:
		node = &yaml.Node{Kind: yaml.MappingNode}
		if token == '[' {
			node.Kind = yaml.SequenceNode
		}
		for d.More() {
			child, err := yamlNode(d)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err = d.Token() // the closing delimiter
	case string:
		node.Tag = "!!str"
		if !plainYAML.MatchString(token) || yamlWords.MatchString(token) {
			node.Style = yaml.DoubleQuotedStyle
		}
	case nil:
		node.Value = "null"
	}
	return node, err
}

// A string is printed without quotes only if every parser reads it as a string. Some
// parsers read yes and off as booleans.
var (
	plainYAML = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9._/ -]*[A-Za-z0-9])?$`)
	yamlWords = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)
)
