package dump

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// read returns each document of a text as one line, and the error.
func read(text string) ([]string, error) {
	var all []string
	err := readDocuments("f", strings.NewReader(text), func(d ipam.Document) error {
		kind := d.Kind
		if d.List {
			kind += " list"
		}
		if d.More {
			kind += " and more"
		}
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s: %s %s %s", d.Place, d.APIVersion, kind, d.Data)))
		return nil
	})
	return all, err
}

// pairs is the output of "etcdctl get -w json" for keys and values.
func pairs(more string, keysAndValues ...string) string {
	var kvs []string
	for i := 0; i < len(keysAndValues); i += 2 {
		kvs = append(kvs, fmt.Sprintf(`{"key": %q, "create_revision": 2, "mod_revision": 9007199254740993, "version": 1, "value": %q}`,
			base64.StdEncoding.EncodeToString([]byte(keysAndValues[i])), base64.StdEncoding.EncodeToString([]byte(keysAndValues[i+1]))))
	}
	return fmt.Sprintf(`{"header": {"cluster_id": 14841639068965178418}, "kvs": [%s]%s, "count": 2}`, strings.Join(kvs, ", "), more)
}

func TestDocumentsInEveryForm(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod"}`
	for _, tt := range []struct {
		name string
		text string
		want []string
	}{
		{"a JSON object", `{"kind": "Pod", "apiVersion": "v1"}`, []string{"document 1: v1 Pod " + pod}},
		{"a list as kubectl writes it", `{"apiVersion": "v1", "items": [{"apiVersion":"v1","kind":"Pod"}, {"apiVersion":"v1","kind":"Pod"}], "kind": "List"}`,
			[]string{"document 1, item 1: v1 Pod " + pod, "document 1, item 2: v1 Pod " + pod, "document 1: v1 List list"}},
		{"a list as the API server writes it", `{"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": ""}, "items": [{"a": 1}]}`,
			[]string{`document 1, item 1: v1 Pod {"a": 1}`, "document 1: v1 PodList list"}},
		{"one page of a list", `{"kind": "PodList", "metadata": {"continue": "x"}, "items": []}`, []string{"document 1:  PodList list and more"}},
		{"one shard of a list", `{"kind": "PodList", "metadata": {"shardInfo": {"selector": "x"}}, "items": []}`, []string{"document 1:  PodList list and more"}},
		{"an empty list", `{"kind": "PodList", "items": []}`, []string{"document 1:  PodList list"}},
		{"no list in place of one", `{"kind": "PodList", "items": null}`, []string{`document 1:  PodList {"kind":"PodList"}`}},

		{"YAML", "apiVersion: v1\nkind: Pod\n", []string{"document 1: v1 Pod " + pod}},
		{"YAML documents", "# first\n---\n# nothing\n---\na: 1\n...\nb: 2\n---\n", []string{`document 1:   {"a":1}`, `document 2:   {"b":2}`}},
		{"JSON behind comments", "# here {\n\n # and {\n{\"a\": 1}\n--- # there\n{}",
			[]string{`document 1:   {"a":1}`, "document 2:   {}"}},
		{"a YAML list as kubectl writes it", "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n- apiVersion: v1\n  kind: Pod\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
			[]string{"document 1, item 1: v1 Pod " + pod, "document 1, item 2: v1 Pod " + pod, "document 1: v1 List list"}},

		{"the output of etcdctl", pairs("", "/calico/a", `{"a": 1}`, "/calico/b", "", "/calico/c", "no JSON"),
			[]string{`key /calico/a:   {"a": 1}`, "key /calico/b:", "key /calico/c:   no JSON", "document 1:   list"}},
		{"a part of the output of etcdctl", pairs(`, "more": true`, "/calico/a", "1"), []string{"key /calico/a:   1", "document 1:   list and more"}},
		{"the output of etcdctl of nothing", `{"header": {"revision": 2}}`, []string{"document 1:   list"}},

		{"with a byte order mark", "\ufeff{\"a\": 1}{\"b\": 2}", []string{`document 1:   {"a":1}`, `document 2:   {"b":2}`}},
		{"YAML with a byte order mark", "\ufeffa: 1\r\n---\r\nb: 2\r\n", []string{`document 1:   {"a":1}`, `document 2:   {"b":2}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(tt.text)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("documents: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Sequence numbers of blocks are above 2^53, where floating point has gaps.
func TestIntegersStayExact(t *testing.T) {
	for _, number := range []string{
		"9007199254740993", "1800000000000000007", "18446744073709551615", "-9007199254740993",
	} {
		want := []string{`document 1:   {"at":` + number + `}`}
		for _, text := range []string{`{"at": ` + number + `}`, "at: " + number + "\n", "--- !!map\n{\"at\": " + number + "}\n"} {
			if got, err := read(text); err != nil || !cmp.Equal(got, want) {
				t.Errorf("%q is %q, %v, want %q", text, got, err, want)
			}
		}
		want = []string{`document 1, item 1:  Pod {"at":` + number + `,"kind":"Pod"}`, "document 1:  PodList list"}
		for _, text := range []string{`{"kind": "PodList", "items": [{"at":` + number + `,"kind":"Pod"}]}`, "items:\n- at: " + number + "\n  kind: Pod\nkind: PodList\n"} {
			if got, err := read(text); err != nil || !cmp.Equal(got, want) {
				t.Errorf("%q is %q, %v, want %q", text, got, err, want)
			}
		}
	}
}

// Some YAML parsers take these strings for numbers, times and booleans.
func TestStringsStayStrings(t *testing.T) {
	want := []string{`document 1:   {"4":{},"a":"1e5","b":"2026-03-01 12:00:00 +0000 UTC","c":"yes","t":"2026-03-01T12:00:00Z"}`}
	for _, text := range []string{
		`{"4": {}, "a": "1e5", "b": "2026-03-01 12:00:00 +0000 UTC", "c": "yes", "t": "2026-03-01T12:00:00Z"}`,
		"4: {}\na: \"1e5\"\nb: 2026-03-01 12:00:00 +0000 UTC\nc: 'yes'\nt: 2026-03-01T12:00:00Z\n",
	} {
		if got, err := read(text); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q is %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestFilesWithoutDocumentsAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		want string
	}{
		{"nothing", "", "f: the file has no objects"},
		{"a text", "hello\nthere\n", "f: document 1 is not an object"},
		{"keys of etcd as text", "/calico/a\n{\"a\": 1}\n", "f: the file has etcd's keys as text: dump them with etcdctl get --prefix /calico/ -w json"},
		{"UTF-16 as PowerShell redirects it", "\xff\xfe{\x00}\x00", "f: the file is in UTF-16: write it as UTF-8, in PowerShell with | Out-File -Encoding utf8 FILE"},
		{"big-endian UTF-16", "\xfe\xff\x00{\x00}", "f: the file is in UTF-16: write it as UTF-8, in PowerShell with | Out-File -Encoding utf8 FILE"},
		{"an array", `[{"kind": "Pod"}]`, "f: document 1 is not an object"},
		{"an array in YAML", "a: 1\n---\n- kind: Pod\n", "f: document 2 is not an object"},
		{"a number in a list", `{"kind": "PodList", "items": [1]}`, "f: document 1, item 1 is not an object"},
		{"items that are no list", `{"items": {"a": 1}}`, "f: document 1: its items are not one list"},
		{"two lists", `{"kind": "PodList", "items": [], "kvs": []}`, "f: document 1: its items are not one list"},
		{"a list whose metadata says nothing", `{"kind": "PodList", "metadata": 7, "items": []}`,
			"f: document 1: json: cannot unmarshal number into Go struct field .metadata of type v1.ListMeta"},
		{"JSON that is cut short", "{\"a\": 1}\n{\"a\": \"b", "f: document 2 is cut short: dump it again"},
		{"inside of a list", `{"kind": "PodList", "items": [{"a": 1}, {"b"`, "f: document 1 is cut short: dump it again"},
		{"JSON that is wrong", "{\"a\": 1}\n{\"a\" 1}", "f: document 2: byte 14: expected colon after object key"},
		{"YAML that is wrong", "a: 1\n---\n\nb: c: d\n",
			"f: document 2, which begins in line 2: yaml: line 3: mapping values are not allowed in this context"},
		{"a key twice", "a: 1\na: 2\n",
			"f: document 1, which begins in line 1: yaml: unmarshal errors:\n  line 2: key \"a\" already set in map"},
		{"an item without a kind", `{"items": [{"a": 1}], "kind": "PodList"}`, "f: document 1, item 1 has no kind, and its list names none before it"},
		{"a YAML list that is cut short", "apiVersion: v1\nitems:\n- kind: Pod\n", "f: document 1 is a list without a kind, so the file may be cut short: dump it again"},
		{"a value without a key", `{"kvs": [{"value": "e30="}]}`, "f: document 1, item 1 has no key"},
		{"keys that are not in base64", `{"kvs": [{"key": "%"}]}`, "f: document 1, item 1: illegal base64 data at input byte 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(tt.text)
			if err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s; documents %q", err, tt.want, got)
			}
		})
	}
}

func TestReadingStopsAtAnErrorOfTheCaller(t *testing.T) {
	enough := errors.New("enough")
	for _, text := range []string{
		`{} {}`, "a: 1\n---\nb: 2\n", "items:\n- kind: Pod\n- kind: Pod\nkind: PodList\n", `{"kind": "PodList", "items": [{}, {}]}`,
		pairs("", "/calico/a", "1", "/calico/b", "2"),
	} {
		calls := 0
		err := readDocuments("f", strings.NewReader(text), func(ipam.Document) error {
			calls++
			return enough
		})
		if !errors.Is(err, enough) || calls != 1 {
			t.Errorf("%q: %d documents, %v, want to stop at the first", text, calls, err)
		}
	}
}

func TestReadErrorsNameTheFile(t *testing.T) {
	broken := errors.New("broken pipe")
	err := readDocuments("f", iotest.ErrReader(broken), func(ipam.Document) error { return nil })
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "f: ") {
		t.Errorf("error %v, want the read error", err)
	}
}
