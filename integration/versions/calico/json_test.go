package calico_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// An object is a JSON object with its members in the order in which they are written,
// and each of their values as it is written.
type object []member

type member struct {
	name  string
	value json.RawMessage
}

// parse takes an object apart. Null is one without members.
func parse(t *testing.T, text string) object {
	t.Helper()
	if text == "null" {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var o object
	for decoder.More() {
		name, err := decoder.Token()
		var value json.RawMessage
		if err == nil {
			err = decoder.Decode(&value)
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		o = append(o, member{name.(string), value})
	}
	return o
}

// text is the reverse of parse.
func (o object) text() json.RawMessage {
	var members []string
	for _, m := range o {
		members = append(members, strconv.Quote(m.name)+":"+string(m.value))
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}")
}

func (o object) get(name string) json.RawMessage {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// set replaces a value, or adds one at the end.
func (o *object) set(name string, value json.RawMessage) {
	for i := range *o {
		if (*o)[i].name == name {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, member{name, value})
}

func (o *object) remove(name string) {
	*o = slices.DeleteFunc(*o, func(m member) bool { return m.name == name })
}

// elements are those of an array.
func elements(t *testing.T, array json.RawMessage) []json.RawMessage {
	t.Helper()
	var all []json.RawMessage
	if err := json.Unmarshal(array, &all); err != nil {
		t.Fatalf("%s: %v", array, err)
	}
	return all
}

// join is the reverse of elements.
func join(all []json.RawMessage) json.RawMessage {
	var texts []string
	for _, element := range all {
		texts = append(texts, string(element))
	}
	return json.RawMessage("[" + strings.Join(texts, ",") + "]")
}

// number is an integer, and 0 if there is none.
func number(t *testing.T, text json.RawMessage) int {
	t.Helper()
	if len(text) == 0 {
		return 0
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// unquote is a string without an escape.
func unquote(text json.RawMessage) string { return strings.Trim(string(text), `"`) }
