package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// readWhole reads the one answer that has all objects of a list, object by object. It does not
// hold the answer, so the answer may be of any size. It returns all objects or an error.
func readWhole[T any](ctx context.Context, request *rest.Request, reduce func(json.RawMessage) T) ([]T, error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return readRawList(body, reduce)
}

// readRawList reads a list in JSON to its end. An object may have MaxPage bytes.
func readRawList[T any](from io.Reader, reduce func(json.RawMessage) T) ([]T, error) {
	bounded := &boundedReader{from: from, left: MaxPage}
	values := json.NewDecoder(bounded)
	list := rawList[T]{reduce: func(item json.RawMessage) T {
		bounded.left = MaxPage
		return reduce(item)
	}}
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
		return nil, fmt.Errorf("decode: %w", err)
	}
	if err := checkList(list.kind, list.meta, list.items != nil); err != nil {
		return nil, err
	}
	if list.meta.Continue != "" {
		return nil, errOnePage
	}
	return list.items, nil
}

// The errors of an answer with a part of the list.
var (
	errOnePage = errors.New("the answer is a page, and a list was requested")
	errShard   = errors.New("the answer is a part of a list: it is one shard")
)

// A rawList is a list that is being read.
type rawList[T any] struct {
	kind   string
	meta   metav1.ListMeta
	items  []T // nil if there are none yet
	reduce func(json.RawMessage) T
}

// readField reads a field of the list. A list has each field once.
func (l *rawList[T]) readField(values *json.Decoder) error {
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
	case "kind":
		return Decode(value, &l.kind)
	case "metadata":
		return Decode(value, &l.meta)
	}
	return nil
}

// readItems reads the objects; null if there are none.
func (l *rawList[T]) readItems(values *json.Decoder) error {
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
		var item json.RawMessage
		if err := values.Decode(&item); err != nil {
			return unexpected(err)
		}
		l.items = append(l.items, l.reduce(item))
	}
	return delimiter(values, ']')
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

// A boundedReader reads no more bytes than are left. After an error, it reads nothing: a
// json.Decoder forgets an error that comes with the last bytes, and reads again.
type boundedReader struct {
	from io.Reader
	left int
	err  error
}

// Read implements io.Reader.
func (r *boundedReader) Read(p []byte) (n int, err error) {
	switch {
	case r.err != nil:
		return 0, r.err
	case r.left == 0:
		return 0, errLargeObject
	}
	n, r.err = r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, r.err
}
