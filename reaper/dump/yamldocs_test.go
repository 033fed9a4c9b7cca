package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/reaper"
)

func TestYAMLItemsBeginAtTheirDashes(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		want []string // the items
	}{
		{"as kubectl writes it", "a: 1\nitems:\n- b: 1\n  c: 2\n- d: 3\nkind: PodList\n", []string{`{"b":1,"c":2}`, `{"d":3}`}},
		{"indented", "items:\n  - b: 1\n    c: 2\n  - d: 3\nkind: PodList\n", []string{`{"b":1,"c":2}`, `{"d":3}`}},
		{"to the end of the text", "kind: PodList\nitems:\n- b: 1", []string{`{"b":1}`}},
		{"lists inside", "kind: PodList\nitems:\n- b:\n  - 1\n  - 2\n-\n  c:\n  - 3\n", []string{`{"b":[1,2]}`, `{"c":[3]}`}},
		{"a text with dashes inside", "kind: PodList\nitems:\n- b: |\n    - 1\n   \n\n    - 2\n- c: 3\n", []string{`{"b":"- 1\n\n\n- 2\n"}`, `{"c":3}`}},
		{"comments", "items: \n# a\n- b: 1\n# c\n  d: 2\n#\n- e: 3\n# f\nkind: PodList\n", []string{`{"b":1,"d":2}`, `{"e":3}`}},
		{"from Windows", "items:\r\n- b: 1\r\n- c: 2\r\nkind: PodList\r\n", []string{`{"b":1}`, `{"c":2}`}},
		{"a long line", "kind: PodList\nitems:\n- b: " + strings.Repeat("x", 200_000) + "\n- c: 2\n", []string{`{"b":"` + strings.Repeat("x", 200_000) + `"}`, `{"c":2}`}},

		{"no items", "items:\nkind: PodList\n", nil},
		{"nothing behind", "kind: PodList\nitems:\n", nil},
		{"on the same line", "kind: PodList\nitems: [{b: 1}]\n", []string{`{"b":1}`}},
		{"brackets in the next line", "kind: PodList\nitems:\n  [{b: 1}]\n", []string{`{"b":1}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			for i, item := range tt.want {
				want = append(want, fmt.Sprintf("document 1, item %d:  Pod %s", i+1, item))
			}
			want = append(want, "document 1:  PodList list")
			got, err := read(tt.text)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("documents: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestYAMLThatOnlyLooksLikeAListStaysWhole(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		want string
	}{
		{"deeper inside", "spec:\n  items:\n  - b: 1\n", `document 1:   {"spec":{"items":[{"b":1}]}}`},
		{"another field", "itemses:\n- b: 1\n", `document 1:   {"itemses":[{"b":1}]}`},
		{"inside of a text", "a: \"\n\nitems:\n- b\"\n", `document 1:   {"a":"\nitems: - b"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(tt.text)
			if diff := cmp.Diff([]string{tt.want}, got); diff != "" || err != nil {
				t.Errorf("documents: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestYAMLListsWithAWrongLineAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		want string
	}{
		{"items that are no list", "items:\n  b: 1\n", "f: document 1: items is not a list"},
		{"an item that is indented too little", "kind: PodList\nitems:\n  - b: 1\n - c: 2\n",
			"f: document 1, which begins in line 1: the items are not indented alike"},
		{"an item that is not indented", "kind: PodList\nitems:\n  - b: 1\n- c: 2\n",
			"f: document 1, which begins in line 1: the items are not indented alike"},
		{"a line that is no item", "items:\n  - b: 1\n  c: 2\n", "f: document 1: items is not a list"},
		{"a wrong line behind the items", "# a\n---\nitems:\n- b: 1\n  c: 2\nkind: d: e\n",
			"f: document 1, which begins in line 2: yaml: line 5: mapping values are not allowed in this context"},
		{"a key twice, on both sides of the items", "kind: List\nitems:\n- b: 1\nkind: List\n",
			"f: document 1, which begins in line 1: yaml: unmarshal errors:\n  line 4: key \"kind\" already set in map"},
		{"items twice", "kind: List\nitems:\n- b: 1\nmetadata: {}\nitems:\n- c: 2\n",
			"f: document 1, which begins in line 1: yaml: unmarshal errors:\n  line 6: key \"items\" already set in map"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(tt.text)
			if err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s; documents %q", err, tt.want, got)
			}
		})
	}
}

// A list that is read item by item has the same items as one that is read as a
// whole.
func FuzzYAMLItems(f *testing.F) {
	for _, text := range []string{
		"a: 1\nitems:\n- b: 1\n  c: 2\n- d: 3\nkind: List\n",
		"items:\n  - b: |\n      - 1\n   \n\n  - \"c\\\n    - d\"\n  # e\n  - ? f\nkind: List\nmetadata: {}\n",
		"items:\n- 'a\n- b'\n- &c d\n- *c\n- >\n e\n\n- - f\n  - [g,\n h]\n",
		"\"a\nitems:\n- b\n\"\n", "items:\r\n- b: 1\r\n-\tc: 2\r\nkind: List\r\n", "items:\n- |2\n   a\n-\n- !!str b\n%c\n- d\n",
		"\"a\n\nitems:\n- b: \": 1\nkind: List\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in := newChunks(bytes.NewReader(text))
		if _, isJSON := in.beforeJSON(); isJSON || len(firstChunk(append([]byte("\n"), text...))) <= len(text) {
			return // JSON, or several documents
		}
		var got []any
		err := readDocuments("f", bytes.NewReader(text), func(d reaper.Document) error {
			if d.List {
				return nil
			}
			var item any
			got = append(got, item)
			return json.Unmarshal(d.Data, &got[len(got)-1])
		})
		if err != nil {
			return // refused
		}
		var whole any
		if err := yaml.UnmarshalStrict(text, &whole); err != nil {
			return // the items are refused only as a whole
		}
		want := []any{whole}
		switch whole := whole.(type) {
		case []any:
			want = whole
		case map[string]any:
			if items, ok := whole["items"]; ok {
				want, _ = items.([]any)
			}
			if _, ok := whole["kvs"]; ok {
				return // of etcd
			}
			if whole["kind"] == nil && whole["header"] != nil {
				return // of etcd
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("items of %q (-want +got):\n%s", text, diff)
		}
	})
}

// Any text is read in the same way in one piece and byte by byte, and every document
// of it is an object.
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
