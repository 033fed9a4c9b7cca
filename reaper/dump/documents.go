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

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// documents reads the objects in one file: JSON values, YAML documents, or the output of
// etcdctl. It hands out each item of a list as its own document.
type documents struct {
	file   string // the file's name in messages
	take   func(ipam.Document) error
	count  int // of the documents begun so far
	budget budget
}

// readDocuments hands the documents of a file to take, one by one, and stops at the first error
// that take returns. A list comes after its items. JSON may be of any size, any other text has
// at most maxText bytes.
//
// The text is in UTF-8, or in UTF-16 with a byte order mark, as PowerShell writes it.
func readDocuments(file string, r io.Reader, take func(ipam.Document) error) error {
	in := bufio.NewReaderSize(transform.NewReader(r, unicode.BOMOverride(transform.Nop)), 1<<16)
	d := &documents{file: file, take: take, budget: budget{in: in}}
	begin, _ := in.Peek(in.Size()) // the next read returns the error
	var err error
	if begin = bytes.TrimSpace(begin); len(begin) > 0 && strings.ContainsRune("{[", rune(begin[0])) {
		err = d.json()
	} else {
		err = d.text(in)
	}
	if err == nil && d.count == 0 {
		err = errors.New("the file has no objects")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// json reads JSON values. It holds one item of a list at a time.
func (d *documents) json() error {
	d.budget.renew()
	values := json.NewDecoder(&d.budget)
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
			return fmt.Errorf("%s is cut short: dump it again", d.place())
		case errors.As(err, new(*json.SyntaxError)), errors.Is(err, errObjectTooLarge):
			return fmt.Errorf("%s: byte %d: %w", d.place(), values.InputOffset(), err)
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

// keyed hands out a value from etcd.
func (d *documents) keyed(key string, value []byte) error {
	return d.give(ipam.Document{Place: "key " + key, Key: key, Data: value})
}

// give hands out a document, and begins the next object.
func (d *documents) give(doc ipam.Document) error {
	d.budget.renew()
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

// ofList returns the type of the items of a list, which the items themselves lack in an answer
// of the API server. It is zero for a list of mixed items.
func (m meta) ofList() meta {
	kind, ok := strings.CutSuffix(m.Kind, "List")
	if !ok || kind == "" {
		return meta{}
	}
	return meta{m.APIVersion, kind}
}
