package dump

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// yaml reads one YAML document, which begins in the given line. It is converted
// by what kubectl prints by, so that it comes out as it went in: integers of 64
// bits are exact.
//
// The items of a list are converted one at a time where they can be told apart: the
// values of a whole dump take many times its size.
func (d *documents) yaml(text []byte, line int) error {
	if head, items, ok := splitItems(text); ok {
		values, token, err := fromYAML(head)
		if err == nil && token == json.Delim('{') {
			d.count++
			return d.yamlList(values, items, line)
		}
	}
	values, token, err := fromYAML(text)
	switch {
	case err == nil && token == nil:
		return nil // blank, or comments
	case err == nil:
		d.count++
		return d.value(values, token)
	}
	d.count++
	return fmt.Errorf("%s, which begins in line %d: %w", d.place(), line, err)
}

// yamlList reads a list whose items were taken out.
func (d *documents) yamlList(head *json.Decoder, items []yamlItem, line int) error {
	l := d.newList()
	if err := l.read(head); err != nil {
		return err
	}
	for _, item := range items {
		values, _, err := fromYAML(item.text)
		if err == nil {
			err = l.elements(values)
		} else {
			l.element++
			err = fmt.Errorf("%s, which begins in line %d: %w", l.at(), line+item.line, err)
		}
		if err != nil {
			return err
		}
	}
	return l.finish()
}

// fromYAML returns a YAML document as JSON, and the first token of that.
func fromYAML(text []byte) (*json.Decoder, json.Token, error) {
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, nil, err
	}
	values := json.NewDecoder(bytes.NewReader(data))
	token, err := values.Token()
	return values, token, err
}

// A yamlItem is one item of a list: a text of its own, of a list of one.
type yamlItem struct {
	text []byte
	line int // of the document, from 0
}

// splitItems takes the items out of the text of a list that is written as kubectl
// writes it, line by line. What is left has the field, and no items in it. It
// reports false for any other text.
//
// Every line of an item but the first is indented deeper than its dash.
func splitItems(text []byte) (head []byte, items []yamlItem, ok bool) {
	offset, number := 0, 0
	dash := -1 // the column of the dashes; -1 before the first
	found := false
	for line := range bytes.Lines(text) {
		indent, isBlank, isItem := layout(line)
		switch {
		case !found:
			head = append(head, line...)
			found = indent == 0 && string(bytes.TrimRight(line, " \t\r\n")) == itemsField+":"
		case isItem && (indent == dash || dash < 0):
			dash = indent
			items = append(items, yamlItem{text: text[offset:offset], line: number})
			fallthrough
		case dash >= 0 && (isBlank || indent > dash):
			item := &items[len(items)-1].text
			*item = (*item)[:len(*item)+len(line)]
		case dash >= 0 && indent == 0:
			return append(head, text[offset:]...), items, true
		case !isBlank:
			return nil, nil, false
		}
		offset += len(line)
		number++
	}
	return head, items, dash >= 0
}

// layout says where a line of YAML begins, and whether it is nothing but space and
// a comment, or begins an item.
func layout(line []byte) (indent int, isBlank, isItem bool) {
	line = bytes.TrimRight(line, " \t\r\n")
	bare := bytes.TrimLeft(line, " ")
	isBlank = len(bare) == 0 || bare[0] == '#'
	isItem = len(bare) > 0 && bare[0] == '-' && (len(bare) == 1 || bare[1] == ' ' || bare[1] == '\t')
	return len(line) - len(bare), isBlank, isItem
}
