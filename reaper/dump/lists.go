package dump

import (
	"encoding/json"
	"fmt"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The fields that make an object a list.
const (
	itemsField = "items" // in Kubernetes
	pairsField = "kvs"   // in the output of etcdctl
)

// A list is an object that is being read. It turns out to be a list once a field with elements
// comes.
type list struct {
	*documents
	fields  map[string]json.RawMessage // all fields but the elements
	of      string                     // the name of the field with the elements; empty if the object is not a list
	element int                        // the number of the current element, from 1
}

func (d *documents) newList() *list {
	return &list{documents: d, fields: make(map[string]json.RawMessage)}
}

// read reads the fields of an object after its opening brace. It hands out the
// elements of a list one by one.
func (l *list) read(values *json.Decoder) error {
	for values.More() {
		token, err := values.Token()
		if err != nil {
			return err
		}
		switch name, _ := token.(string); name {
		case itemsField, pairsField:
			err = l.array(values, name)
		default:
			var value json.RawMessage
			err = values.Decode(&value)
			l.fields[name] = value
		}
		if err != nil {
			return err
		}
	}
	_, err := values.Token()
	return err
}

// array reads the field with the elements. A null is an empty list.
func (l *list) array(values *json.Decoder, name string) error {
	l.of = name
	token, err := values.Token()
	switch {
	case err != nil:
		return err
	case token == nil:
		return nil
	case token != json.Delim('['):
		return fmt.Errorf("%s: %s is not a list", l.place(), name)
	}
	return l.elements(values)
}

// elements reads the elements of an array after its opening bracket.
func (l *list) elements(values *json.Decoder) error {
	for values.More() {
		var value json.RawMessage
		if err := values.Decode(&value); err != nil {
			return err
		}
		l.element++
		each := l.item
		if l.of == pairsField {
			each = l.pair
		}
		if err := each(value); err != nil {
			return err
		}
	}
	_, err := values.Token()
	return err
}

// at names the current element in messages.
func (l *list) at() string { return fmt.Sprintf("%s, item %d", l.place(), l.element) }

// item hands out an item of a Kubernetes list.
func (l *list) item(data []byte) error {
	if data[0] != '{' {
		return fmt.Errorf("%s is not an object", l.at())
	}
	m := readMeta(data)
	if m.Kind == "" {
		m = l.meta().ofList()
	}
	if m.Kind == "" && l.of == itemsField {
		return fmt.Errorf("%s has no kind, and its list names none before it", l.at())
	}
	return l.give(ipam.Document{Place: l.at(), APIVersion: m.APIVersion, Kind: m.Kind, Data: data})
}

// pair hands out a key and its value, as "etcdctl get -w json" prints them.
func (l *list) pair(data []byte) error {
	var kv struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	}
	if err := kube.Decode(data, &kv); err != nil {
		return fmt.Errorf("%s: %w", l.at(), err)
	}
	if len(kv.Key) == 0 {
		return fmt.Errorf("%s has no key", l.at())
	}
	return l.keyed(string(kv.Key), kv.Value)
}

// meta returns the type that the fields name, as far as they were read.
func (l *list) meta() meta {
	var m meta
	for name, into := range map[string]*string{"kind": &m.Kind, "apiVersion": &m.APIVersion} {
		if json.Unmarshal(l.fields[name], into) != nil {
			*into = ""
		}
	}
	return m
}

// finish hands out the object or, for a list, a document that marks its end.
//
// A list without a kind is refused. kubectl writes the kind after the items, so in YAML a
// missing kind is the only sign that the file was cut short.
func (l *list) finish() error {
	m := l.meta()
	if m.Kind == "" && l.fields["header"] != nil {
		l.of = pairsField // etcdctl leaves out an empty list
	}
	switch {
	case l.of == "":
		data, err := json.Marshal(l.fields)
		if err != nil {
			return fmt.Errorf("%s: %w", l.place(), err)
		}
		return l.give(ipam.Document{APIVersion: m.APIVersion, Kind: m.Kind, Data: data})
	case l.of == itemsField && m.Kind == "":
		return fmt.Errorf("%s is a list without a kind, so the file may be cut short: dump it again", l.place())
	}
	return l.give(ipam.Document{APIVersion: m.APIVersion, Kind: m.Kind, List: true, More: l.more()})
}

// more reports whether the list is one page of a longer one.
func (l *list) more() bool {
	var metadata struct {
		Continue string `json:"continue"`
	}
	_ = json.Unmarshal(l.fields["metadata"], &metadata)
	return metadata.Continue != "" || string(l.fields["more"]) == "true"
}
