package kube

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"k8s.io/client-go/rest"
)

// ReadList reads every object of a list, by quorum reads. It returns the whole list or an
// error, never a part. request returns a new request for the list on each call. With a client
// from Remember, it asks the API server only once whether its lists are read whole.
//
// It decodes the objects one by one as they arrive, so that it never holds an answer. It
// decodes an object again if it reads it again.
//
// It reads the list in one answer if the API server has it in its cache, and in pages
// otherwise, or after that answer broke off: the API server ends each answer after its
// --request-timeout.
func ReadList[T any](ctx context.Context, client rest.Interface, request func() *rest.Request, of Form[T]) ([]T, error) {
	mode := modeOf(client)
	if mode.whole(ctx) {
		list, err := readAnswer(ctx, request(), of)
		if err == nil && list.next != "" {
			err = errOnePage
		}
		if mode.settled(ctx, err) {
			return list.items, err
		}
	}
	return ReadPages(ctx, pageSize, request, of)
}

// ReadPages is ReadList in pages, with at most limit objects on each.
func ReadPages[T any](ctx context.Context, limit int, request func() *rest.Request, of Form[T]) ([]T, error) {
	return readPages(ctx, func(ctx context.Context, token string) (page[T], error) {
		r := request().Param("limit", strconv.Itoa(limit))
		if token != "" {
			r = r.Param("continue", token)
		}
		return readAnswer(ctx, r, of)
	})
}

// readAnswer makes a request, and decodes the answer to its end: the whole list, or a page.
func readAnswer[T any](ctx context.Context, request *rest.Request, of Form[T]) (page[T], error) {
	stream, err := request.Stream(ctx)
	if err != nil {
		return page[T]{}, err
	}
	defer stream.Close()
	return of.read(NewObjectReader(stream))
}

// pageSize is the largest number of objects on a page of a list, as in kubectl.
const pageSize = 500

// errOnePage is the error for an answer with only part of the list.
var errOnePage = errors.New("the answer is one page of the list")

// An ObjectReader reads an answer or a file in which each object has at most MaxObject bytes.
// After an error, it reads nothing: a json.Decoder forgets an error that comes with the last
// bytes, and reads again.
type ObjectReader struct {
	from io.Reader
	left int
	err  error
}

// NewObjectReader returns a reader of the objects.
func NewObjectReader(from io.Reader) *ObjectReader { return &ObjectReader{from: from, left: MaxObject} }

// Read implements io.Reader. The error is ErrLargeObject if the current object is too large.
func (r *ObjectReader) Read(p []byte) (n int, err error) {
	switch {
	case r.err != nil:
		return 0, r.err
	case r.left == 0:
		return 0, ErrLargeObject
	}
	n, r.err = r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, r.err
}

// Next begins an object. What was read ahead of it does not count.
func (r *ObjectReader) Next() { r.left = MaxObject }

// A Form says what a list is called, and how its objects are decoded, in JSON and in protobuf.
// An API server that is asked for protobuf may answer in JSON.
type Form[T any] struct {
	apiVersion, kind string // of the list; empty if any will do
	json             func(object json.RawMessage) (T, error)

	// Protobuf decodes an object in protobuf. If it is nil, the list must be in JSON.
	Protobuf func(object []byte) (T, error)
}

// FormOf returns the form of a list of API objects, each passed to reduce.
func FormOf[O, T any, P interface {
	*O
	Unmarshal(message []byte) error
}](apiVersion, kind string, reduce func(*O) T) Form[T] {
	object := func(decode func(into *O) error) (T, error) {
		o := new(O)
		if err := decode(o); err != nil {
			return *new(T), err
		}
		return reduce(o), nil
	}
	return Form[T]{
		apiVersion: apiVersion, kind: kind,
		json:     func(data json.RawMessage) (T, error) { return object(func(o *O) error { return Decode(data, o) }) },
		Protobuf: func(data []byte) (T, error) { return object(func(o *O) error { return P(o).Unmarshal(data) }) },
	}
}

// read decodes a list, or a page of one, to its end.
func (f Form[T]) read(body *ObjectReader) (page[T], error) {
	from := bufio.NewReaderSize(body, 64<<10)
	switch prefix, err := from.Peek(len(protobufPrefix)); {
	case err != nil && !errors.Is(err, io.EOF): // JSON may be shorter
		return page[T]{}, err
	case f.Protobuf != nil && string(prefix) == protobufPrefix:
		return readProtobufList(from, f, body.Next)
	}
	return readJSONList(from, f, body.Next)
}
