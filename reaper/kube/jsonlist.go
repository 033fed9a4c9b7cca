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
	if of.named != nil {
		of.named(list.named)
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
	listed bool // whether it has items, or an empty list of them
	items  []T
}

// read reads the list, and fails if anything follows it.
func (l *jsonList[T]) read() error {
	if err := delimiter(l.values, '{'); err != nil {
		return err
	}
	list, err := ReadObject(l.values, map[string]func(json.RawMessage) error{"items": l.readItem}, l.readField)
	if err != nil {
		return err
	}
	l.listed = list != ""
	switch token, err := l.values.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%v after the list", token)
	}
}

// readField reads a field of the list other than its items.
func (l *jsonList[T]) readField(name string, value json.RawMessage) error {
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

// readItem reads an object of the list.
func (l *jsonList[T]) readItem(object json.RawMessage) error {
	item, err := l.form.json(object)
	if err != nil {
		return err
	}
	l.items = append(l.items, item)
	l.next()
	return nil
}

// ErrItems says that the items of a list are not an array, or that there are two lists.
var ErrItems = errors.New("its items are not one list")

// ReadObject reads a JSON object after its opening brace. It passes the elements of an array to
// the function that lists has for the name of its field, one by one as they arrive, so that a
// list is never held. It passes the value of any other field to field.
//
// It returns the name of the field with the array, or an empty one if there is none: a null in
// its place is no list.
func ReadObject(values *json.Decoder, lists map[string]func(element json.RawMessage) error, field func(name string, value json.RawMessage) error) (list string, err error) {
	for values.More() {
		token, err := values.Token()
		if err != nil {
			return "", err
		}
		name, _ := token.(string)
		element, listed := lists[name]
		switch {
		case !listed:
			err = readValue(values, func(value json.RawMessage) error { return field(name, value) })
		case list != "":
			err = ErrItems
		default:
			if listed, err = readElements(values, element); listed {
				list = name
			}
		}
		if err != nil {
			return "", err
		}
	}
	return list, delimiter(values, '}')
}

// readElements passes on the elements of an array. It returns false for null.
func readElements(values *json.Decoder, element func(json.RawMessage) error) (bool, error) {
	switch token, err := values.Token(); {
	case err != nil:
		return false, err
	case token == nil:
		return false, nil
	case token != json.Delim('['):
		return false, ErrItems
	}
	for values.More() {
		if err := readValue(values, element); err != nil {
			return false, err
		}
	}
	return true, delimiter(values, ']')
}

// readValue passes on one value.
func readValue(values *json.Decoder, to func(json.RawMessage) error) error {
	var value json.RawMessage
	if err := values.Decode(&value); err != nil {
		return err
	}
	return to(value)
}

// delimiter reads a brace or a bracket.
func delimiter(values *json.Decoder, want json.Delim) error {
	token, err := values.Token()
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
	case !l.listed && l.named.Kind != metadataList:
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
