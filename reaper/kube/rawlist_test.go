package kube

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// The token of the next page is known before the objects are decoded. An API server writes the
// metadata of a list before the objects of its own resources, and behind custom resources.
func TestTokenOfNextPageIsFoundBeforeTheObjectsAreDecoded(t *testing.T) {
	const object = `{"metadata":{"continue":"of an object"},"spec":"\"metadata\":{\"continue\":\"in a text\"}"}`
	for _, tt := range []struct{ name, answer, want string }{
		{"before the objects", `{"kind":"List","metadata":{"continue":"next"},"items":[` + object + `]}`, "next"},
		{"behind the objects", `{"items":[` + object + `],"kind":"List","metadata":{"continue":"next"}}`, "next"},
		{"the last page", `{"items":[` + object + `],"kind":"List","metadata":{"resourceVersion":"9"}}`, ""},
		{"nowhere", `{"items":[]}`, ""},
		{"no list", `[]`, ""},
		{"half an answer", `{"items":[{"meta`, ""},
		{"nothing", ``, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := likelyContinue([]byte(tt.answer)); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// Promise 2. A list whose reading fails is none, even if the error comes with the last bytes, and
// only once.
func TestErrorWithTheLastBytesOfAListCounts(t *testing.T) {
	const list = `{"items":[{"a":1}],"kind":"BlockList","metadata":{"resourceVersion":"9"}}`
	failure := errors.New("the stream was reset")
	item := func(json.RawMessage) int { return 1 }
	if got, err := readRawList(strings.NewReader(list), item); err != nil || len(got) != 1 {
		t.Fatalf("%v, %v; want one object", got, err)
	}
	for name, from := range map[string]io.Reader{
		"once":              &lastBytes{list, failure},
		"behind all of it":  io.MultiReader(strings.NewReader(list), iotest.ErrReader(failure)),
		"byte after byte":   iotest.OneByteReader(io.MultiReader(strings.NewReader(list), iotest.ErrReader(failure))),
		"with the last one": iotest.DataErrReader(io.MultiReader(strings.NewReader(list), iotest.ErrReader(failure))),
	} {
		if got, err := readRawList(from, item); !errors.Is(err, failure) || got != nil {
			t.Errorf("%s: %v, %v; want nothing, and the failure", name, got, err)
		}
	}
}

// lastBytes has a text, and fails with the end of it. Then it is over.
type lastBytes struct {
	text    string
	failure error
}

func (r *lastBytes) Read(p []byte) (int, error) {
	n := copy(p, r.text)
	switch r.text = r.text[n:]; {
	case n == 0:
		return 0, io.EOF
	case r.text != "":
		return n, nil
	}
	return n, r.failure
}
