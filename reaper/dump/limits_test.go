package dump

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An endlessText is a text followed by endless repeats. It counts the bytes that were read.
type endlessText struct {
	text   string
	repeat string
	read   int64
}

func (e *endlessText) Read(p []byte) (int, error) {
	if e.text == "" {
		e.text = e.repeat
	}
	n := copy(p, e.text)
	e.text = e.text[n:]
	e.read += int64(n)
	return n, nil
}

// A JSON dump may be larger than the machine's memory.
func TestItemsOfJSONAreReadOneByOne(t *testing.T) {
	enough := errors.New("enough")
	text := &endlessText{text: `{"kind": "PodList", "apiVersion": "v1", "items": [`, repeat: `{"metadata": {"name": "web"}, "spec": {}},`}
	pods := 0
	err := readDocuments("f", text, func(ipam.Document) error {
		if pods++; pods == 10_000 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || pods != 10_000 || text.read > 1<<20 {
		t.Errorf("%d pods after %d bytes: %v", pods, text.read, err)
	}
}

// Reading an endless text stops at the limit of an object or of a file.
func TestEndlessFilesAreGivenUp(t *testing.T) {
	for _, tt := range []struct {
		name          string
		begin, repeat string
		want          error
	}{
		{"/dev/zero", "", "\x00", errYAMLTooLarge},
		{"a YAML list", "kind: PodList\napiVersion: v1\nitems:\n", "- kind: Pod\n", errYAMLTooLarge},
		{"a JSON string", `{"kind": "`, "x", kube.ErrLargeObject},
		{"an item of a JSON list", `{"kind": "PodList", "items": [{"metadata": {}}, {"metadata": {"name": "`, "x", kube.ErrLargeObject},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := &endlessText{text: tt.begin, repeat: strings.Repeat(tt.repeat, 1000)}
			err := readDocuments("f", text, func(ipam.Document) error { return nil })
			if !errors.Is(err, tt.want) || !strings.HasPrefix(err.Error(), "f: ") {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if most := map[error]int64{errYAMLTooLarge: maxYAML, kube.ErrLargeObject: kube.MaxObject}[tt.want]; text.read > most+1<<20 {
				t.Errorf("%d bytes were read", text.read)
			}
		})
	}
}

// A file of JSON may be larger than any of its objects.
func TestManyObjectsAreReadWhateverTheirSizeTogether(t *testing.T) {
	object := strings.Repeat("x", kube.MaxObject/3)
	for name, text := range map[string]struct{ begin, each, end string }{
		"objects":         {"", `{"kind": "Pod", "a": "` + object + "\"}\n", ""},
		"a list":          {`{"items": [{"kind": "Pod"}`, `, {"kind": "Pod", "a": "` + object + `"}`, `], "kind": "List"}`},
		"items by a list": {`{"kind": "PodList", "items": [{}`, `, {"a": "` + object + `"}`, `]}`},
	} {
		t.Run(name, func(t *testing.T) {
			read := 0
			whole := text.begin + strings.Repeat(text.each, 4) + text.end
			err := readDocuments("f", strings.NewReader(whole), func(doc ipam.Document) error {
				if len(doc.Data) > kube.MaxObject/3 {
					read++
				}
				return nil
			})
			if err != nil || read != 4 {
				t.Errorf("%d objects of 4, %v", read, err)
			}
		})
	}
}

// A name must be a regular file's, or that of a file that a shell has opened.
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
