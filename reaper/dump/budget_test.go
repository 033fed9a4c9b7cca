package dump

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A text without an end is given up at the limit of a document, wherever it is.
func TestEndlessDocumentsAreGivenUp(t *testing.T) {
	for _, tt := range []struct {
		name          string
		begin, repeat string
	}{
		{"/dev/zero", "", "\x00"},
		{"one line", "", "x"},
		{"comments", "", "# x\n"},
		{"a JSON string", `{"kind": "`, "x"},
		{"fields of a JSON object", `{`, `"a": "` + strings.Repeat("x", 500) + `",`},
		{"an item of a JSON list", `{"kind": "PodList", "items": [{"metadata": {}}, {"metadata": {"name": "`, "x"},
		{"fields of an item", `{"kind": "PodList", "items": [{`, `"a": 1,`},
		{"a YAML document", "kind: Pod\n", "a: 1\n"},
		{"an item of a YAML list", "kind: PodList\napiVersion: v1\nitems:\n- kind: Pod\n- kind: Pod\n", "  a: 1\n"},
		{"a YAML list in brackets", "items: [", "{a: 1},"},
		{"a key of etcd", "/calico/ipam/v2/", "x"},
		{"a value of etcd", "/calico/ipam/v2/handle/a\n", "{}"},
		{"a value of etcd in JSON", `{"kvs": [{"key": "YQ==", "value": "`, "YWFh"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := &endlessText{text: tt.begin, repeat: strings.Repeat(tt.repeat, 1000)}
			err := readDocuments("f", text, func(reaper.Document) error { return nil })
			if !errors.Is(err, errTooLarge) || !strings.HasPrefix(err.Error(), "f: line ") {
				t.Errorf("%v, want that the document is too large", err)
			}
			if text.read > maxDocument+1<<20 {
				t.Errorf("%d bytes were read", text.read)
			}
		})
	}
}

// A file may be larger than any of its documents.
func TestManyDocumentsAreReadWhateverTheirSizeTogether(t *testing.T) {
	object := strings.Repeat("x", maxDocument/3)
	for name, text := range map[string]struct{ begin, each, end string }{
		"JSON objects":    {"", `{"kind": "Pod", "a": "` + object + "\"}\n", ""},
		"a JSON list":     {`{"items": [{"kind": "Pod"}`, `, {"kind": "Pod", "a": "` + object + `"}`, `], "kind": "List"}`},
		"items by a list": {`{"kind": "PodList", "items": [{}`, `, {"a": "` + object + `"}`, `]}`},
		"items too early": {`{"items": [{}`, `, {"a": "` + object + `"}`, `], "kind": "PodList"}`},
		"YAML documents":  {"", "---\nkind: Pod\na: " + object + "\n", ""},
		"a YAML list":     {"items:\n- kind: Pod\n", "- kind: Pod\n  a: " + object + "\n", "kind: List\n"},
		"values of etcd":  {"", "/calico/ipam/v2/handle/a\n\"" + object + "\"\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			read := 0
			whole := text.begin + strings.Repeat(text.each, 4) + text.end
			err := readDocuments("f", strings.NewReader(whole), func(doc reaper.Document) error {
				if len(doc.Data) > maxDocument/3 {
					read++
				}
				return nil
			})
			if err != nil || read != 4 {
				t.Errorf("%d documents of 4, %v", read, err)
			}
		})
	}
}

// A name is that of a regular file, or of what a shell has opened.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the names are those of Linux")
	}
	dir := t.TempDir()
	file, fifo, link := filepath.Join(dir, "file"), filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), syscall.Mkfifo(fifo, 0o600), os.Symlink("/dev/zero", link)); err != nil {
		t.Fatal(err)
	}
	for name, refused := range map[string]bool{file: false, "/dev/fd/0": false, "/dev/zero": true, fifo: true, link: true} {
		f, err := OpenFile(name)
		if errors.Is(err, errNoFile) != refused {
			t.Errorf("OpenFile(%s) = %v, want it refused: %v", name, err, refused)
		}
		if err == nil {
			_ = f.Close()
		}
	}
}
