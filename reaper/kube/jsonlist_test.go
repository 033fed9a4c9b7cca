package kube

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

const blockList = `{"apiVersion":"g/v1","items":[{"a":1},{"b":2}],"kind":"BlockList","metadata":{"resourceVersion":"9"}}`

// readBlocks reads a list in JSON, and returns how many objects it has.
func readBlocks(from io.Reader) (int, error) {
	form := Form[int]{json: func(json.RawMessage) (int, error) { return 1, nil }}
	list, err := form.read(NewObjectReader(from))
	return len(list.items), err
}

// Promise 2, 11. An answer that is not a whole list is an error, not a shorter list.
func TestAnswerThatIsNoWholeListIsAnError(t *testing.T) {
	edit := func(was, now string) string { return strings.Replace(blockList, was, now, 1) }
	for _, tt := range []struct{ name, answer, says string }{
		{"an empty list", `{"metadata":{"resourceVersion":"9"},"items":[]}`, ""},
		{"an empty list of metadata", `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"9"},"items":null}`, ""},
		{"with more behind it", blockList + `{}`, "after the list"},
		{"with two lists", edit(`"kind"`, `"items":[],"kind"`), "not one list"},
		{"without a version", edit(`"9"`, `""`), "not a list: it has no resourceVersion"},
		{"in other letters", `{"Metadata":{"ResourceVersion":"9"},"Items":[{}]}`, "not a list: it has no resourceVersion"},
		{"an object", `{"kind":"Block","metadata":{"resourceVersion":"9"},"spec":{}}`, "not a list: it has no items"},
		{"a list of nothing", `{"items":null,"kind":"BlockList","metadata":{"resourceVersion":"9"}}`, "not a list: it has no items"},
		{"an object for its list", `{"items":{"a":"b"},"kind":"BlockList","metadata":{"resourceVersion":"9"}}`, "not one list"},
		{"a shard", edit(`"resourceVersion"`, `"shardInfo":{"selector":"a"},"resourceVersion"`), "it is one shard"},
		{"a list of no such object", edit(`{"b":2}`, `{"b":}`), "decode"},
		{"no JSON", `<html>`, "decode"},
		{"nothing", ``, "unexpected EOF"},
	} {
		if n, err := readBlocks(strings.NewReader(tt.answer)); (err == nil) != (tt.says == "") || n > 0 || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %d objects, %v; want none, and %q", tt.name, n, err, tt.says)
		}
	}
	for cut := range len(blockList) {
		if n, err := readBlocks(strings.NewReader(blockList[:cut])); err == nil || n > 0 {
			t.Errorf("after %d of %d bytes: %d objects, %v", cut, len(blockList), n, err)
		}
	}
}

// Promise 2. If reading a list fails, there is no list, even if the error comes with the last
// bytes, and only once.
func TestErrorWithTheLastBytesOfAListCounts(t *testing.T) {
	failure := errors.New("the stream was reset")
	if got, err := readBlocks(strings.NewReader(blockList)); err != nil || got != 2 {
		t.Fatalf("%v, %v; want two objects", got, err)
	}
	for name, from := range map[string]io.Reader{
		"once":              &lastBytes{blockList, failure},
		"behind all of it":  io.MultiReader(strings.NewReader(blockList), iotest.ErrReader(failure)),
		"byte after byte":   iotest.OneByteReader(io.MultiReader(strings.NewReader(blockList), iotest.ErrReader(failure))),
		"with the last one": iotest.DataErrReader(io.MultiReader(strings.NewReader(blockList), iotest.ErrReader(failure))),
	} {
		if got, err := readBlocks(from); !errors.Is(err, failure) || got != 0 {
			t.Errorf("%s: %v, %v; want nothing, and the failure", name, got, err)
		}
	}
}

// lastBytes has a text, and fails together with its last bytes. After that, it only returns
// io.EOF.
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

// Reading an endless object is given up, and what comes before it does not count.
func TestObjectWithoutAnEndIsGivenUp(t *testing.T) {
	text := `"` + strings.Repeat("x", 1<<20) + `",`
	before := `{"items":[` + strings.Repeat(text, 2+MaxObject>>20) + `"` // more bytes than one object may have
	n, err := readBlocks(io.MultiReader(strings.NewReader(before), endless{}))
	if !errors.Is(err, ipam.ErrRefused) || n > 0 || !strings.Contains(err.Error(), "more than 8 MiB") {
		t.Errorf("%d objects, %v; want none, and ErrRefused", n, err)
	}
}

// endless is a text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
