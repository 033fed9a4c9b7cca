package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readJSONList reads a list in JSON to its end, object by object, and calls next behind each. It
// returns the whole answer or an error, never a part.
func readJSONList[T any](from io.Reader, of Form[T], next func()) (page[T], error) {
	values := json.NewDecoder(from)
	list := jsonList[T]{form: of, next: next}
	err := delimiter(values, '{')
	for err == nil && values.More() {
		err = list.readField(values)
	}
	if err == nil {
		err = delimiter(values, '}')
	}
	if err == nil {
		err = nothingMore(values)
	}
	if err != nil {
		return page[T]{}, fmt.Errorf("decode: %w", err)
	}
	if err := list.check(); err != nil {
		return page[T]{}, err
	}
	return page[T]{items: list.items, next: list.meta.Continue, version: list.meta.ResourceVersion}, nil
}

// The errors of an answer that is not a list, or not all of it.
var (
	// Any object, even an empty one, decodes as a list without items. A real list has a
	// resourceVersion.
	errNoList = errors.New("the answer is not a list: it has no resourceVersion")

	errNoItems = errors.New("the answer is not a list: it has no items") // an object has none
	errShard   = errors.New("the answer is a part of a list: it is one shard")
)

// metadataList is the kind of a list of metadata alone. The API server sends null for its items
// if there are none.
const metadataList = "PartialObjectMetadataList"

// A jsonList is a list that is being read.
type jsonList[T any] struct {
	form  Form[T]
	next  func()
	named metav1.TypeMeta
	meta  metav1.ListMeta
	items []T // nil if there are none yet
}

// readField reads a field of the list. A list has each field once.
func (l *jsonList[T]) readField(values *json.Decoder) error {
	name, err := values.Token()
	switch {
	case err != nil:
		return unexpected(err)
	case name == "items" && l.items != nil:
		return errors.New("the answer has two lists")
	case name == "items":
		return l.readItems(values)
	}
	var value json.RawMessage
	if err := values.Decode(&value); err != nil {
		return unexpected(err)
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
func (l *jsonList[T]) readItems(values *json.Decoder) error {
	switch token, err := values.Token(); {
	case err != nil:
		return unexpected(err)
	case token == nil:
		return nil
	case token != json.Delim('['):
		return errNoItems
	}
	l.items = []T{}
	for values.More() {
		var object json.RawMessage
		if err := values.Decode(&object); err != nil {
			return unexpected(err)
		}
		item, err := l.form.json(object)
		if err != nil {
			return err
		}
		l.items = append(l.items, item)
		l.next()
	}
	return delimiter(values, ']')
}

// check returns an error unless the answer is a list of this form, or a page of one.
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

// delimiter reads a brace or a bracket.
func delimiter(values *json.Decoder, want json.Delim) error {
	token, err := values.Token()
	if err == nil && token != want {
		err = fmt.Errorf("%v in place of %v", token, want)
	}
	return unexpected(err)
}

// nothingMore returns an error unless the answer is over.
func nothingMore(values *json.Decoder) error {
	token, err := values.Token()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		err = fmt.Errorf("%v behind the list", token)
	}
	return err
}
