package dump

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// A cut is one chunk, and where it was.
type cut struct {
	Key  string
	Text string
	Line int
}

// cuts reads a text to its end. If skim is set, no chunk is read.
func cuts(t *testing.T, r io.Reader, skim bool) []cut {
	t.Helper()
	var all []cut
	for c := newChunks(r); ; {
		key, err := c.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		one := cut{Key: key, Line: c.line}
		if !skim {
			text, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			one.Text = string(text)
		}
		all = append(all, one)
	}
}

func TestChunks(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, tt := range []struct {
		name string
		text string
		want []cut
	}{
		{"nothing", "", []cut{{"", "", 1}}},
		{"one", "a\nb", []cut{{"", "a\nb", 1}}},
		{"YAML documents", "a: 1\n---\nb: 2\n...\nc: 3\n", []cut{{"", "a: 1\n", 1}, {"", "\nb: 2\n", 2}, {"", "\nc: 3\n", 4}}},
		{"a mark at the top", "---\na: 1\n", []cut{{"", "\na: 1\n", 1}}},
		{"a mark at the end", "a\n---", []cut{{"", "a\n", 1}, {"", "", 2}}},
		{"text behind a mark", "--- # here\na\n---\tb\n", []cut{{"", " # here\na\n", 1}, {"", "\tb\n", 3}}},
		{"from Windows", "a\r\n---\r\nb\r\n", []cut{{"", "a\r\n", 1}, {"", "\r\nb\r\n", 2}}},
		{"lines that only look like marks", "a\n----\n--\n....\n ---\n/calicoes\n", []cut{{"", "a\n----\n--\n....\n ---\n/calicoes\n", 1}}},
		{"keys of etcd", "/calico/a\n1\n\n/calico/b\r\n/calico/c\n3",
			[]cut{{"/calico/a", "1\n\n", 2}, {"/calico/b", "", 5}, {"/calico/c", "3", 6}}},
		{"a key without an end", "/calico/a", []cut{{"/calico/a", "", 1}}},
		{"long lines", long + "\n---\n" + long, []cut{{"", long + "\n", 1}, {"", "\n" + long, 2}}},
		{"a mark inside of a long line", long + "---\n", []cut{{"", long + "---\n", 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, cuts(t, strings.NewReader(tt.text), false)); diff != "" {
				t.Errorf("chunks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, cuts(t, iotest.OneByteReader(strings.NewReader(tt.text)), false)); diff != "" {
				t.Errorf("chunks, byte by byte (-want +got):\n%s", diff)
			}
			var skimmed []cut
			for _, c := range tt.want {
				skimmed = append(skimmed, cut{c.Key, "", c.Line})
			}
			if diff := cmp.Diff(skimmed, cuts(t, strings.NewReader(tt.text), true)); diff != "" {
				t.Errorf("chunks, not read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChunksReturnReadErrors(t *testing.T) {
	broken := errors.New("broken pipe")
	c := newChunks(io.MultiReader(strings.NewReader("a\n---\nb"), iotest.ErrReader(broken)))
	for range 2 {
		if _, err := c.next(); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := io.ReadAll(c); !errors.Is(err, broken) {
		t.Errorf("read %q, %v, want the read error", text, err)
	}
}
