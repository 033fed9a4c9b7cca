// Package dump reads what kubectl and etcdctl printed, as documents.
package dump

import (
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

// documents reads the objects in one file. The text may be several JSON values,
// several YAML documents, or what etcdctl prints; of a list, each item is a
// document. Windows' shells write UTF-16.
type documents struct {
	file  string // as people call it
	take  func(reaper.Document) error
	count int // of the documents that were begun
}

// readDocuments hands what is in a file to take, one by one, and stops at an error
// of it. A list comes after its items.
func readDocuments(file string, r io.Reader, take func(reaper.Document) error) error {
	d := &documents{file: file, take: take}
	in := newChunks(transform.NewReader(r, unicode.BOMOverride(transform.Nop)))
	for {
		key, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = d.chunk(key, in)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if d.count == 0 {
		return fmt.Errorf("%s: there is nothing in it", file)
	}
	return nil
}

// chunk reads what stands between two lines that separate documents.
func (d *documents) chunk(key string, in *chunks) error {
	if first, before := in.opens(); key == "" && (first == '{' || first == '[') {
		if _, err := io.CopyN(io.Discard, in, int64(before)); err != nil {
			return err
		}
		return d.json(in)
	}
	line := in.line
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if key == "" {
		return d.yaml(text, line)
	}
	d.count++
	return d.give(reaper.Document{Place: "key " + key, Key: key, Data: bytes.TrimSpace(text)})
}

// json reads the values of a chunk, which may be larger than what should be held
// in memory.
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
			err = d.value(values, token)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%s is cut short at byte %d", d.place(), in.offset)
		case errors.As(err, new(*json.SyntaxError)):
			return fmt.Errorf("%s: byte %d: %w", d.place(), from+values.InputOffset(), err)
		case err != nil:
			return err
		}
	}
}

// value reads one value, of which the first token was read.
func (d *documents) value(values *json.Decoder, token json.Token) error {
	l := d.newList()
	switch token {
	case json.Delim('['):
		return l.elements(values)
	case json.Delim('{'):
		if err := l.read(values); err != nil {
			return err
		}
		return l.finish()
	default:
		return fmt.Errorf("%s is no object, but %s", d.place(), word(token))
	}
}

// word says what a token is.
func word(token json.Token) string {
	switch token.(type) {
	case string:
		return "a text"
	case nil:
		return "null"
	default:
		return fmt.Sprintf("%v", token)
	}
}

// place names the current document.
func (d *documents) place() string { return fmt.Sprintf("document %d", d.count) }

// give hands a document out.
func (d *documents) give(doc reaper.Document) error {
	doc.File = d.file
	if doc.Place == "" {
		doc.Place = d.place()
	}
	return d.take(doc)
}

// meta is what every object of Kubernetes says of itself.
type meta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// readMeta reads what it can.
func readMeta(data []byte) meta {
	var m meta
	if err := kube.Decode(data, &m); err != nil {
		return meta{}
	}
	return m
}

// ofList is what the items of a list are where they do not say so themselves.
func (m meta) ofList() meta {
	kind, ok := strings.CutSuffix(m.Kind, "List")
	if !ok || kind == "" {
		return meta{}
	}
	return meta{m.APIVersion, kind}
}
