package dump

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Any text is read the same way in one piece and byte by byte, and every document in it is an
// object.
func FuzzDocuments(f *testing.F) {
	for _, text := range []string{
		`{"kind": "PodList", "items": [{"a": 1}, {"kind": "x"}]} {"b": 2}`, "a: 1\n---\nitems:\n- b: 2\nkind: List\n",
		"/calico/a\n{}\n", pairs("", "/calico/a", `{"b": 1}`), "\ufeff---\n{}\n", "\xff\xfe{\x00}\x00", "--- {}\n...\n[\n", "{\"items\": null",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var docs []ipam.Document
		take := func(d ipam.Document) error {
			docs = append(docs, d)
			return nil
		}
		err := readDocuments("f", bytes.NewReader(text), take)
		first := docs
		docs = nil
		again := readDocuments("f", iotest.OneByteReader(bytes.NewReader(text)), take)
		if diff := cmp.Diff(first, docs); diff != "" || (err == nil) != (again == nil) {
			t.Errorf("%q: %v, and byte by byte: %v (-want +got):\n%s", text, err, again, diff)
		}
		for _, d := range docs {
			if d.Place == "" || d.List && d.Data != nil {
				t.Errorf("%q: document %+v", text, d)
			}
			if object := (map[string]json.RawMessage)(nil); d.Key == "" && !d.List && json.Unmarshal(d.Data, &object) != nil {
				t.Errorf("%q: %s is no object: %s", text, d.Place, d.Data)
			}
		}
		if err == nil && len(docs) == 0 {
			t.Errorf("%q: nothing, and no error", text)
		}
	})
}
