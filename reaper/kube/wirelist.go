package kube

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// protobufPrefix begins each protobuf answer of an API server. A message with the object's kind
// and the object follows.
const protobufPrefix = "k8s\x00"

// The numbers of the fields that are read in that message (runtime.Unknown), in the kind
// (TypeMeta), in a list, and in its ListMeta.
const (
	unknownType, unknownRaw         = 1, 2
	typeAPIVersion, typeKind        = 1, 2
	listMetadata, listItems         = 1, 2
	listVersion, listContinue       = 2, 3
	listShard                       = 5
	maxType                   int64 = 1 << 10 // bytes
)

// A wireList is a list in protobuf that is being read.
type wireList[T any] struct {
	*wireStream
	form Form[T]
	next func()
	page page[T]
}

// readProtobufList reads a list in protobuf to its end, object by object, and calls next after
// each, so that neither the list nor an object is held. It returns the whole answer or an
// error, never a part.
func readProtobufList[T any](from *bufio.Reader, of Form[T], next func()) (page[T], error) {
	if _, err := from.Discard(len(protobufPrefix)); err != nil {
		return page[T]{}, unexpected(err)
	}
	l := wireList[T]{wireStream: &wireStream{from: from}, form: of, next: next}
	switch err := l.readUnknown(); {
	case err != nil:
		return page[T]{}, fmt.Errorf("decode: %w", err)
	case l.page.version == "":
		return page[T]{}, errNoList
	}
	return l.page, nil
}

// readUnknown reads the message with the kind and the list.
func (l *wireList[T]) readUnknown() error {
	const end = 1 << 62 // the message ends with the stream
	var named, complete bool
	for {
		number, kind, err := l.tag()
		switch {
		case errors.Is(err, io.EOF) && complete && named:
			return nil
		case err != nil:
			return unexpected(err)
		case number == unknownRaw && complete:
			return errors.New("the answer has two objects")
		case number == unknownRaw:
			var size int64
			if size, err = l.size(kind, end); err == nil {
				err = l.readFields(l.offset + size)
			}
			complete = true
		default: // none is long
			var content []byte
			content, err = l.content(kind, l.offset+maxType)
			if err == nil && number == unknownType {
				named, err = true, l.checkType(content)
			}
		}
		if err != nil {
			return err
		}
	}
}

// checkType returns an error unless a TypeMeta is the list's.
func (l *wireList[T]) checkType(message []byte) error {
	var apiVersion, kind string
	err := EachField(message, func(f Field) (err error) {
		switch int32(f.Number) {
		case typeAPIVersion:
			apiVersion, err = f.Text()
		case typeKind:
			kind, err = f.Text()
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.form.is(apiVersion, kind)
}

// readFields reads the list up to an offset of the stream.
func (l *wireList[T]) readFields(end int64) error {
	for l.offset < end {
		number, kind, err := l.tag()
		if err != nil {
			return unexpected(err)
		}
		content, err := l.content(kind, end)
		switch {
		case err != nil:
			return err
		case number == listMetadata:
			err = EachField(content, l.readMeta)
		case number == listItems:
			var item T
			item, err = l.form.Protobuf(content)
			l.page.items = append(l.page.items, item)
			l.next()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readMeta reads a field of a ListMeta.
func (l *wireList[T]) readMeta(f Field) (err error) {
	switch int32(f.Number) {
	case listVersion:
		l.page.version, err = f.Text()
	case listContinue:
		l.page.next, err = f.Text()
	case listShard:
		err = errShard
	}
	return err
}
