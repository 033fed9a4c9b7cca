// Package dump reads what kubectl and etcdctl printed, as documents.
package dump

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// documents reads the objects in one file: JSON values, YAML documents, or the
// output of etcdctl. It hands out each item of a list as a document of its own.
type documents struct {
	file  string // the name of the file in messages
	take  func(reaper.Document) error
	count int // of the documents that were begun
	text  *budget
}

// readDocuments hands the documents of a file to take, one by one, and stops at the
// first error that take returns. A list comes after its items. A document or an item that
// has more than maxDocument bytes is an error.
//
// The text is in UTF-8, or in UTF-16 with a byte order mark, as PowerShell writes it. The
// file may also be a tar, of which each entry is a document.
func readDocuments(file string, r io.Reader, take func(reaper.Document) error) error {
	begun := bufio.NewReader(r)
	if isTar(begun) {
		return readTar(file, begun, take)
	}
	text := &budget{in: transform.NewReader(begun, unicode.BOMOverride(transform.Nop))}
	d := &documents{file: file, take: take, text: text}
	in := newChunks(text)
	for {
		text.renew()
		key, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = d.chunk(key, in)
		}
		if errors.Is(err, errTooLarge) {
			return fmt.Errorf("%s: line %d: %w", file, in.line, err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if d.count == 0 {
		return fmt.Errorf("%s: the file has no objects", file)
	}
	return nil
}

// chunk reads the documents between two lines that separate documents.
func (d *documents) chunk(key string, in *chunks) error {
	if key != "" {
		d.count++
		value, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		return d.give(reaper.Document{Place: "key " + key, Key: key, Data: bytes.TrimSpace(value)})
	}
	before, isJSON := in.beforeJSON()
	if !isJSON {
		return d.yaml(in, in.line)
	}
	if _, err := io.CopyN(io.Discard, in, int64(before)); err != nil {
		return err
	}
	return d.json(in)
}

// json reads the JSON values of a chunk. It holds one item of a list at a time.
func (d *documents) json(in *chunks) error {
	from := in.offset
	values := json.NewDecoder(in)
	for {
		token, err := values.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		d.count++
		if err == nil {
			err = d.newList().value(values, token)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%s is cut short at byte %d: dump it again", d.place(), in.offset)
		case errors.As(err, new(*json.SyntaxError)):
			return fmt.Errorf("%s: byte %d: %w", d.place(), from+values.InputOffset(), err)
		case err != nil:
			return err
		}
	}
}

// value reads one value after its first token.
func (l *list) value(values *json.Decoder, token json.Token) error {
	switch token {
	case json.Delim('['):
		return l.elements(values)
	case json.Delim('{'):
		if err := l.read(values); err != nil {
			return err
		}
		return l.finish()
	default:
		return fmt.Errorf("%s is not an object, but %s", l.place(), word(token))
	}
}

// word names the type of a token for messages.
func word(token json.Token) string {
	switch token.(type) {
	case string:
		return "a string"
	case nil:
		return "null"
	default:
		return fmt.Sprintf("%v", token)
	}
}

// place names the current document.
func (d *documents) place() string { return fmt.Sprintf("document %d", d.count) }

// give hands out a document, and begins the next one.
func (d *documents) give(doc reaper.Document) error {
	d.text.renew()
	doc.File = d.file
	if doc.Place == "" {
		doc.Place = d.place()
	}
	return d.take(doc)
}

// meta is the type of a Kubernetes object.
type meta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// readMeta returns the type of an object, or the zero meta if it cannot be read.
func readMeta(data []byte) meta {
	var m meta
	if err := kube.Decode(data, &m); err != nil {
		return meta{}
	}
	return m
}

// ofList returns the type of the items of a list, which the items leave out in an
// answer of the API server. It is zero for a list of mixed items.
func (m meta) ofList() meta {
	kind, ok := strings.CutSuffix(m.Kind, "List")
	if !ok || kind == "" {
		return meta{}
	}
	return meta{m.APIVersion, kind}
}
