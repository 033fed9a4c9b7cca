package dump

import (
	"errors"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// An endlessText repeats a text after a beginning, and counts the bytes it gave.
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

// A dump may be larger than the memory of the machine.
func TestItemsAreReadOneByOne(t *testing.T) {
	for _, tt := range []struct {
		name          string
		begin, repeat string
	}{
		{"JSON", `{"kind": "PodList", "apiVersion": "v1", "items": [`, `{"metadata": {"name": "web"}, "spec": {}},`},
		{"YAML", "kind: PodList\napiVersion: v1\nitems:\n", "- metadata:\n    name: web\n  spec: {}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			enough := errors.New("enough")
			text := &endlessText{text: tt.begin, repeat: tt.repeat}
			pods := 0
			err := readDocuments("f", text, func(reaper.Document) error {
				if pods++; pods == 10_000 {
					return enough
				}
				return nil
			})
			if !errors.Is(err, enough) || pods != 10_000 || text.read > 1<<20 {
				t.Errorf("%d pods after %d bytes: %v", pods, text.read, err)
			}
		})
	}
}
