package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readJSONList reads a list in JSON to its end, object by object, and calls next after each. It
// returns the whole answer or an error, never a part.
func readJSONList[T any](from io.Reader, of Form[T], next func()) (page[T], error) {
	list := jsonList[T]{form: of, next: next, values: json.NewDecoder(from)}
	if err := list.read(); err != nil {
		return page[T]{}, fmt.Errorf("decode: %w", unexpected(err))
	}
	if err := list.check(); err != nil {
		return page[T]{}, err
	}
	return page[T]{items: list.items, next: list.meta.Continue, version: list.meta.ResourceVersion}, nil
}

// The errors for an answer that is not a list, or not a whole one.
var (
	// Any object, even an empty one, decodes as a list without items, but a real list has a
	// resourceVersion.
	errNoList = errors.New("the answer is not a list: it has no resourceVersion")

	errNoItems = errors.New("the answer is not a list: it has no items") // an object has none
	errShard   = errors.New("the answer is a part of a list: it is one shard")
)

// metadataList is the kind of a list of only metadata. The API server sends null for its items
// if there are none.
const metadataList = "PartialObjectMetadataList"

// A jsonList is a list that is being read.
type jsonList[T any] struct {
	values *json.Decoder
	form   Form[T]
	next   func()
	named  metav1.TypeMeta
	meta   metav1.ListMeta
	items  []T // nil if there are none yet
}

// read reads the list, and fails if anything follows it. A list has each field once.
func (l *jsonList[T]) read() error {
	err := l.delimiter('{')
	for err == nil && l.values.More() {
		err = l.readField()
	}
	if err == nil {
		err = l.delimiter('}')
	}
	if err != nil {
		return err
	}
	switch token, err := l.values.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%v after the list", token)
	}
}

// readField reads a field of the list.
func (l *jsonList[T]) readField() error {
	name, err := l.values.Token()
	switch {
	case err != nil:
		return err
	case name == "items" && l.items != nil:
		return errors.New("the answer has two lists")
	case name == "items":
		return l.readItems()
	}
	var value json.RawMessage
	if err := l.values.Decode(&value); err != nil {
		return err
	}
	switch name {
	case "apiVersion":
		return Decode(value, &l.named.APIVersion)
	case "kind":
		return Decode(value, &l.named.Kind)
	case "metadata":
		return Decode(value, &l.meta)
	}
	return nil
}

// readItems reads the objects; null if there are none.
func (l *jsonList[T]) readItems() error {
	switch token, err := l.values.Token(); {
	case err != nil:
		return err
	case token == nil:
		return nil
	case token != json.Delim('['):
		return errNoItems
	}
	l.items = []T{}
	for l.values.More() {
		var object json.RawMessage
		if err := l.values.Decode(&object); err != nil {
			return err
		}
		item, err := l.form.json(object)
		if err != nil {
			return err
		}
		l.items = append(l.items, item)
		l.next()
	}
	return l.delimiter(']')
}

// delimiter reads a brace or a bracket.
func (l *jsonList[T]) delimiter(want json.Delim) error {
	token, err := l.values.Token()
	if err == nil && token != want {
		err = fmt.Errorf("%v instead of %v", token, want)
	}
	return err
}

// check returns an error unless the answer is a list of this form, or one page of it.
func (l *jsonList[T]) check() error {
	switch {
	case l.meta.ResourceVersion == "":
		return errNoList
	case l.items == nil && l.named.Kind != metadataList:
		return errNoItems
	case l.meta.ShardInfo != nil:
		return errShard
	case l.form.kind != "":
		return l.form.is(l.named.APIVersion, l.named.Kind)
	}
	return nil
}

// is returns an error if an answer is of another kind.
func (f Form[T]) is(apiVersion, kind string) error {
	if apiVersion != f.apiVersion || kind != f.kind {
		return fmt.Errorf("the answer is not a %s of %s: it is a %q of %q", f.kind, f.apiVersion, kind, apiVersion)
	}
	return nil
}
