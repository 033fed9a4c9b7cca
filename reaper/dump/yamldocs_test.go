package dump

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/reaper"
)

func TestItemsAreSplitWhereTheyBegin(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		head string // empty where it is not split
		want []string
	}{
		{"as kubectl writes it", "a: 1\nitems:\n- b: 1\n  c: 2\n- d: 3\nkind: List\n", "a: 1\nitems:\nkind: List\n", []string{"- b: 1\n  c: 2\n", "- d: 3\n"}},
		{"indented", "items:\n  - b: 1\n    c: 2\n  - d: 3\nkind: List\n", "items:\nkind: List\n", []string{"  - b: 1\n    c: 2\n", "  - d: 3\n"}},
		{"to the end of the text", "kind: List\nitems:\n- b: 1", "kind: List\nitems:\n", []string{"- b: 1"}},
		{"lists inside", "items:\n- b:\n  - 1\n  - 2\n-\n  c:\n  - 3\n", "items:\n", []string{"- b:\n  - 1\n  - 2\n", "-\n  c:\n  - 3\n"}},
		{"a text with dashes inside", "items:\n- b: |\n    - 1\n   \n\n    - 2\n- c\n", "items:\n", []string{"- b: |\n    - 1\n   \n\n    - 2\n", "- c\n"}},
		{"comments", "items: \n# a\n- b: 1\n# c\n  d: 2\n#\n- e\n# f\nkind: List\n", "items: \nkind: List\n", []string{"- b: 1\n# c\n  d: 2\n#\n", "- e\n# f\n"}},
		{"from Windows", "items:\r\n- b: 1\r\n- c: 2\r\nkind: List\r\n", "items:\r\nkind: List\r\n", []string{"- b: 1\r\n", "- c: 2\r\n"}},

		{"no items", "items:\nkind: List\n", "", nil},
		{"nothing behind", "items:\n", "", nil},
		{"on the same line", "items: [1]\n", "", nil},
		{"no list", "items:\n  b: 1\n", "", nil},
		{"deeper inside", "spec:\n  items:\n  - b: 1\n", "", nil},
		{"a line that is indented too little", "items:\n  - b: 1\n - c: 2\n", "", nil},
		{"a line that is no item", "items:\n  - b: 1\n  c: 2\n", "", nil},
		{"another field", "itemses:\n- b: 1\n", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			head, items, ok := splitItems([]byte(tt.text))
			if ok != (tt.head != "") {
				t.Fatalf("split: %t", ok)
			}
			var got []string
			for _, item := range items {
				got = append(got, string(item.text))
				if line := strings.Split(tt.text, "\n")[item.line]; !strings.HasPrefix(string(item.text), line) {
					t.Errorf("item %q does not begin in line %q", item.text, line)
				}
			}
			if diff := cmp.Diff(tt.want, got); ok && (diff != "" || string(head) != tt.head) {
				t.Errorf("head %q, want %q; items (-want +got):\n%s", head, tt.head, diff)
			}
		})
	}
}

// Nothing may come out of a list that is read piece by piece which is not in it.
func FuzzSplitItems(f *testing.F) {
	for _, text := range []string{
		"a: 1\nitems:\n- b: 1\n  c: 2\n- d: 3\nkind: List\n",
		"items:\n  - b: |\n      - 1\n   \n\n  - \"c\\\n    - d\"\n  # e\n  - ? f\nkind: List\nmetadata: {}\n",
		"items:\n- 'a\n- b'\n- &c d\n- *c\n- >\n e\n\n- - f\n  - [g,\n h]\n",
		"\"a\nitems:\n- b\n\"\n", "items:\r\n- b: 1\r\n-\tc\r\nkind: List\r\n", "items:\n- |2\n   a\n-\n- !!str b\n%c\n- d\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if c := newChunks(bytes.NewReader(text)); c.mark() != "" || bytes.Contains(text, []byte("\n---")) || bytes.Contains(text, []byte("\n...")) {
			return // several documents
		}
		head, items, ok := splitItems(text)
		if !ok {
			return
		}
		var want map[string]any
		if yaml.UnmarshalStrict(text, &want) != nil {
			return
		}
		var got map[string]any
		if err := yaml.UnmarshalStrict(head, &got); err != nil || got == nil {
			return // read as a whole
		}
		if got["items"] != nil {
			return // refused: there is more to the list than items
		}
		all := []any{}
		for _, item := range items {
			var one []any
			if yaml.UnmarshalStrict(item.text, &one) != nil {
				return // refused
			}
			all = append(all, one...)
		}
		got["items"] = all
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pieces of %q (-want +got):\n%s", text, diff)
		}
	})
}

// Whatever the text is, and however it comes, it is read the same, and only
// objects come out of it.
func FuzzDocuments(f *testing.F) {
	for _, text := range []string{
		`{"kind": "PodList", "items": [{"a": 1}, {"kind": "x"}]} [{"b": 2}]`, "a: 1\n---\nitems:\n- b: 2\nkind: List\n",
		"/calico/a\n{\"b\": 1}\n/calico/c\n", pairs("", "/calico/a", `{"b": 1}`), "\ufeff---\n{}\n", "\xff\xfe{\x00}\x00", "--- {}\n...\n[\n", "{\"items\": null",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var docs []reaper.Document
		take := func(d reaper.Document) error {
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
		if err == nil && len(docs) == 0 && !bytes.Contains(text, []byte("[")) {
			t.Errorf("%q: nothing, and no error", text)
		}
	})
}
