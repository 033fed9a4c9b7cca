package kube

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Promise 2. A list whose reading fails is none, even if the error comes with the last bytes, and
// only once.
func TestErrorWithTheLastBytesOfAListCounts(t *testing.T) {
	const list = `{"items":[{"a":1}],"kind":"BlockList","metadata":{"resourceVersion":"9"}}`
	failure := errors.New("the stream was reset")
	read := func(from io.Reader) ([]int, error) {
		form := Form[int]{json: func(json.RawMessage) (int, error) { return 1, nil }}
		list, err := form.read(&answerBody{from: from, left: MaxObject})
		return list.items, err
	}
	if got, err := read(strings.NewReader(list)); err != nil || len(got) != 1 {
		t.Fatalf("%v, %v; want one object", got, err)
	}
	for name, from := range map[string]io.Reader{
		"once":              &lastBytes{list, failure},
		"behind all of it":  io.MultiReader(strings.NewReader(list), iotest.ErrReader(failure)),
		"byte after byte":   iotest.OneByteReader(io.MultiReader(strings.NewReader(list), iotest.ErrReader(failure))),
		"with the last one": iotest.DataErrReader(io.MultiReader(strings.NewReader(list), iotest.ErrReader(failure))),
	} {
		if got, err := read(from); !errors.Is(err, failure) || got != nil {
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
