package dump

import (
	"encoding/json"
	"fmt"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The fields that make an object a list.
const (
	itemsField = "items" // of Kubernetes
	pairsField = "kvs"   // of etcd
)

// A list is an object that is being read, and may turn out to be a list.
type list struct {
	*documents
	fields  map[string]json.RawMessage // all but the elements
	of      string                     // the field with the elements, if it is a list
	element int                        // the number of the current one
	early   []reaper.Document          // items of which only the list can say what they are
}

func (d *documents) newList() *list {
	return &list{documents: d, fields: make(map[string]json.RawMessage)}
}

// read reads the fields behind an opening brace, and hands out the elements as
// they come.
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

// array reads the field with the elements. Null is an empty list.
func (l *list) array(values *json.Decoder, name string) error {
	l.of = name
	token, err := values.Token()
	switch {
	case err != nil:
		return err
	case token == nil:
		return nil
	case token != json.Delim('['):
		return fmt.Errorf("%s: %s is no list", l.place(), name)
	}
	return l.elements(values)
}

// elements reads what follows an opening bracket.
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

// at names the current element.
func (l *list) at() string { return fmt.Sprintf("%s, item %d", l.place(), l.element) }

// item hands out an object of Kubernetes.
func (l *list) item(data []byte) error {
	if data[0] != '{' {
		return fmt.Errorf("%s is no object", l.at())
	}
	m := readMeta(data)
	if m.Kind == "" {
		m = l.meta().ofList()
	}
	doc := reaper.Document{Place: l.at(), APIVersion: m.APIVersion, Kind: m.Kind, Data: data}
	if m.Kind == "" && l.of == itemsField {
		l.early = append(l.early, doc)
		return nil
	}
	return l.give(doc)
}

// pair hands out a key of etcd, as etcdctl get -w json prints it.
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
	return l.give(reaper.Document{Place: "key " + string(kv.Key), Key: string(kv.Key), Data: kv.Value})
}

// meta is what the fields say, as far as they were read.
func (l *list) meta() meta {
	var m meta
	for name, into := range map[string]*string{"kind": &m.Kind, "apiVersion": &m.APIVersion} {
		if json.Unmarshal(l.fields[name], into) != nil {
			*into = ""
		}
	}
	return m
}

// finish hands out what had to wait for the end: the items of which only the list
// says what they are, and the list; or the object, if it is none.
//
// Every list of Kubernetes says its kind, and YAML says it behind the items. It is
// all that tells whether a dump is whole.
func (l *list) finish() error {
	m := l.meta()
	if m.Kind == "" && l.fields["header"] != nil {
		l.of = pairsField // which is left out where it is empty
	}
	switch {
	case l.of == "":
		data, err := json.Marshal(l.fields)
		if err != nil {
			return fmt.Errorf("%s: %w", l.place(), err)
		}
		return l.give(reaper.Document{APIVersion: m.APIVersion, Kind: m.Kind, Data: data})
	case l.of == itemsField && m.Kind == "":
		return fmt.Errorf("%s is a list without a kind: is it cut short?", l.place())
	}
	of := m.ofList()
	for _, doc := range l.early {
		doc.APIVersion, doc.Kind = of.APIVersion, of.Kind
		if err := l.give(doc); err != nil {
			return err
		}
	}
	return l.give(reaper.Document{APIVersion: m.APIVersion, Kind: m.Kind, List: true, More: l.more()})
}

// more reports whether the list is one page of a longer one.
func (l *list) more() bool {
	var metadata struct {
		Continue string `json:"continue"`
	}
	_ = json.Unmarshal(l.fields["metadata"], &metadata)
	return metadata.Continue != "" || string(l.fields["more"]) == "true"
}
