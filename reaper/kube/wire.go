package kube

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// A Field is a field of a protobuf message.
type Field struct {
	Number protowire.Number
	kind   protowire.Type
	bytes  []byte // the content of a string or message
	varint uint64
}

// nextField returns the first field of a message, and the rest of the message.
func nextField(message []byte) (f Field, rest []byte, err error) {
	number, kind, n := protowire.ConsumeTag(message)
	if n < 0 {
		return Field{}, nil, protowire.ParseError(n)
	}
	message = message[n:]
	f = Field{Number: number, kind: kind}
	switch kind {
	case protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(message)
	case protowire.VarintType:
		f.varint, n = protowire.ConsumeVarint(message)
	default:
		n = protowire.ConsumeFieldValue(number, kind, message)
	}
	if n < 0 {
		return Field{}, nil, protowire.ParseError(n)
	}
	return f, message[n:], nil
}

// EachField calls read with each field of a message, until it returns an error.
func EachField(message []byte, read func(Field) error) error {
	for len(message) > 0 {
		f, rest, err := nextField(message)
		if err == nil {
			err = read(f)
		}
		if err != nil {
			return err
		}
		message = rest
	}
	return nil
}

// Text returns a copy of the field's string.
func (f Field) Text() (string, error) { return string(f.bytes), f.must(protowire.BytesType) }

// Content returns the field's string or message, as a slice of the enclosing message.
func (f Field) Content() ([]byte, error) { return f.bytes, f.must(protowire.BytesType) }

// Int returns the field's number or bool.
func (f Field) Int() (int64, error) { return int64(f.varint), f.must(protowire.VarintType) }

// must returns an error if the field is not of this type.
func (f Field) must(kind protowire.Type) error {
	if f.kind != kind {
		return fmt.Errorf("field %d has the wire type %d, not %d", f.Number, f.kind, kind)
	}
	return nil
}

// A wireStream reads a protobuf message that is too large to hold.
type wireStream struct {
	from   *bufio.Reader
	offset int64  // how many bytes have been read
	buffer []byte // for one field
}

// ReadByte implements io.ByteReader.
func (s *wireStream) ReadByte() (byte, error) {
	b, err := s.from.ReadByte()
	if err == nil {
		s.offset++
	}
	return b, err
}

// tag reads the number and type of the next field. The error is io.EOF if the stream ends
// before it.
func (s *wireStream) tag() (protowire.Number, protowire.Type, error) {
	tag, err := binary.ReadUvarint(s)
	if err != nil {
		return 0, 0, err
	}
	number, kind := protowire.DecodeTag(tag)
	if !number.IsValid() {
		return 0, 0, fmt.Errorf("%d is not a field tag", tag)
	}
	return number, kind, nil
}

// size reads how many bytes the content of a field has. It must end at the given offset or
// earlier.
func (s *wireStream) size(kind protowire.Type, end int64) (int64, error) {
	if kind != protowire.BytesType {
		return 0, fmt.Errorf("a field has the wire type %d, not %d", kind, protowire.BytesType)
	}
	size, err := binary.ReadUvarint(s)
	switch left := end - s.offset; {
	case err != nil:
		return 0, unexpected(err)
	case left < 0 || size > uint64(left):
		return 0, errors.New("a field is longer than its message")
	}
	return int64(size), nil
}

// content reads the content of a field. It is valid until the next call.
func (s *wireStream) content(kind protowire.Type, end int64) ([]byte, error) {
	size, err := s.size(kind, end)
	switch {
	case err != nil:
		return nil, err
	case size > MaxObject:
		return nil, ErrLargeObject
	case size > int64(cap(s.buffer)):
		s.buffer = make([]byte, size)
	}
	s.buffer = s.buffer[:size]
	n, err := io.ReadFull(s.from, s.buffer)
	s.offset += int64(n)
	return s.buffer, unexpected(err)
}

// unexpected turns io.EOF into the error for a stream that ended too early.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

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
