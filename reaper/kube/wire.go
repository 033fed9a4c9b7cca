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
