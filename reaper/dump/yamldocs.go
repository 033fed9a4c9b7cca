package dump

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// A yamlReader reads one YAML document line by line. It converts the items of a
// list one by one, because the values of a whole dump take thirty times the memory
// of its text.
//
// An item begins with a dash below "items:", and has the lines that are indented
// deeper than that dash. A document in any other form, such as a list in brackets,
// is converted as a whole.
type yamlReader struct {
	*list
	begin, line int    // the first line of the document, and the current one
	rest        []byte // the document, with an empty line for every line of an item
	next        yamlPart
	dash        int // the column of the dashes
	item        []byte
	itemLine    int // the first line of the item; 0 before the first item
}

// A yamlPart is the part of a document that comes next.
type yamlPart int

const (
	itemsLine yamlPart = iota
	firstItem
	moreItems
	noItems
)

// yaml reads one YAML document, which begins in the given line of the file. It
// converts with kubectl's library, so that 64-bit integers stay exact.
func (d *documents) yaml(text io.Reader, begin int) error {
	y := &yamlReader{list: d.newList(), begin: begin, line: begin}
	for in := bufio.NewReader(text); ; y.line++ {
		line, readErr := in.ReadBytes('\n')
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			return readErr
		}
		if err := y.add(line); err != nil {
			return err
		}
		if readErr != nil {
			return y.end()
		}
	}
}

// add takes the current line.
func (y *yamlReader) add(line []byte) error {
	indent, isBlank, isItem := layout(line)
	switch {
	case y.next == itemsLine && string(bytes.TrimRight(line, " \t\r\n")) == itemsField+":":
		y.next = firstItem
	case isItem && (y.next == firstItem && y.startsList() || y.next == moreItems && indent == y.dash):
		if err := y.endItem(); err != nil {
			return err
		}
		y.next, y.dash, y.itemLine = moreItems, indent, y.line
		fallthrough
	case y.next == moreItems && (isBlank || indent > y.dash):
		y.item = append(y.item, line...)
		line = []byte("\n")
	case y.next == moreItems, y.next == firstItem && !isBlank:
		y.next = noItems
	}
	y.rest = append(y.rest, line...)
	return nil
}

// startsList reads the fields before the items. It returns false if the lines are
// not an object so far, for example because "items:" is part of a quoted string.
func (y *yamlReader) startsList() bool {
	values, token, err := fromYAML(y.rest)
	if err != nil || token != json.Delim('{') || y.read(values) != nil {
		return false
	}
	y.count++
	return true
}

// endItem hands out the current item, if there is one.
func (y *yamlReader) endItem() error {
	if y.itemLine == 0 {
		return nil
	}
	values, _, err := fromYAML(y.item)
	if err != nil {
		y.element++
		return fmt.Errorf("%s, which begins in line %d: %w", y.at(), y.itemLine, err)
	}
	y.item = y.item[:0]
	return y.elements(values)
}

// end hands out the last item and the list, or the document that is not split.
func (y *yamlReader) end() error {
	if err := y.endItem(); err != nil {
		return err
	}
	values, token, err := fromYAML(y.rest)
	if err == nil && token == nil {
		return nil // blank, or comments
	}
	isSplit, items := y.itemLine > 0, y.element
	if !isSplit {
		y.count++
	}
	if err == nil {
		err = y.value(values, token)
		if err != nil || !isSplit || y.element == items {
			return err
		}
		err = errors.New("the items are not indented alike")
	}
	return fmt.Errorf("%s, which begins in line %d: %w", y.place(), y.begin, err)
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

// layout returns the indentation of a line of YAML, whether the line has only
// space and a comment, and whether it begins with the dash of an item.
func layout(line []byte) (indent int, isBlank, isItem bool) {
	line = bytes.TrimRight(line, " \t\r\n")
	bare := bytes.TrimLeft(line, " ")
	isBlank = len(bare) == 0 || bare[0] == '#'
	isItem = len(bare) > 0 && bare[0] == '-' && (len(bare) == 1 || bare[1] == ' ' || bare[1] == '\t')
	return len(line) - len(bare), isBlank, isItem
}
