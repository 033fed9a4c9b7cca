package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
)

// headSize is more than what stands in an answer in protobuf before its items.
const headSize = 16 << 10

// list reads a list, page by page. Of an answer, it decodes no more than the token of the
// next page.
func (f floor) list(ctx context.Context, l listing) error {
	accept, next := runtime.ContentTypeJSON, nextInJSON
	if l.Protobuf {
		accept, next = runtime.ContentTypeProtobuf, nextInProtobuf
	}
	for token := ""; ; {
		query := url.Values{}
		if f.page > 0 {
			query.Set("limit", strconv.Itoa(f.page))
		}
		if token != "" {
			query.Set("continue", token)
		}
		response, err := f.send(ctx, http.MethodGet, l.Path+"?"+query.Encode(), accept, nil)
		if err != nil {
			return err
		}
		token, err = read(response.Body, next)
		if err != nil {
			return fmt.Errorf("list %s: %w", l.Path, err)
		}
		if token == "" {
			return nil
		}
	}
}

// read reads a body to its end, and returns the token of the next page.
func read(body io.ReadCloser, next func(head, end []byte) (string, error)) (string, error) {
	defer body.Close()
	r := bufio.NewReaderSize(body, headSize)
	head, err := r.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	head = bytes.Clone(head)
	var end tail
	if _, err := io.Copy(&end, r); err != nil {
		return "", err
	}
	return next(head, end.data)
}

// nextInJSON is the token in a list of custom resources. They have their fields in the
// order of the alphabet, so that the list's metadata is the last field.
func nextInJSON(_, end []byte) (string, error) {
	const name = `"metadata":`
	at := bytes.LastIndex(end, []byte(name))
	if at < 0 {
		return "", errors.New("the answer has no metadata behind its items")
	}
	var metadata struct{ ResourceVersion, Continue string }
	if err := json.NewDecoder(bytes.NewReader(end[at+len(name):])).Decode(&metadata); err != nil {
		return "", fmt.Errorf("decode the metadata behind the items: %w", err)
	}
	if metadata.ResourceVersion == "" {
		return "", errors.New("the metadata behind the items has no resourceVersion")
	}
	return metadata.Continue, nil
}

// The numbers of the fields on the way to the token: Unknown.raw, the list's metadata,
// and ListMeta.continue.
const (
	rawField      = 2
	metadataField = 1
	continueField = 3
)

// nextInProtobuf is the token in a list in protobuf, which begins with the metadata.
func nextInProtobuf(head, _ []byte) (string, error) {
	message, ok := bytes.CutPrefix(head, []byte("k8s\x00"))
	if !ok {
		return "", errors.New("the answer is not protobuf")
	}
	var found bool
	for _, number := range []protowire.Number{rawField, metadataField} {
		if message, found = field(message, number); !found {
			return "", errors.New("the answer has no metadata before its items")
		}
	}
	token, _ := field(message, continueField)
	return string(token), nil
}

// field returns the content of a field that has a length. The message may be cut off in
// the field: then its content is cut off, too.
func field(message []byte, number protowire.Number) ([]byte, bool) {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return nil, false
		}
		message = message[size:]
		if n == number && kind == protowire.BytesType {
			length, size := protowire.ConsumeVarint(message)
			if size < 0 {
				return nil, false
			}
			message = message[size:]
			return message[:min(length, uint64(len(message)))], true
		}
		if size = protowire.ConsumeFieldValue(n, kind, message); size < 0 {
			return nil, false
		}
		message = message[size:]
	}
	return nil, false
}
