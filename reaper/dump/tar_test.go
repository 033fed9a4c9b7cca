package dump

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// tarOf returns a tar of names and contents. A name that ends in a slash is a folder, and a
// content that begins with -> a symbolic link.
func tarOf(t *testing.T, format tar.Format, namesAndContents ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := 0; i < len(namesAndContents); i += 2 {
		name, content := namesAndContents[i], namesAndContents[i+1]
		h := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), ModTime: time.Unix(1700000000, 0), Format: format}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if target, ok := strings.CutPrefix(content, "->"); ok {
			h.Typeflag, h.Linkname, h.Size, content = tar.TypeSymlink, target, 0, ""
		}
		if err := errors.Join(w.WriteHeader(h), second(w.Write([]byte(content)))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func second(_ int, err error) error { return err }

// Each entry of a tar is a document, with its type and its time.
func TestTarIsReadByEntry(t *testing.T) {
	for _, format := range []tar.Format{tar.FormatUSTAR, tar.FormatPAX, tar.FormatGNU} {
		var got []string
		err := readDocuments("f", bytes.NewReader(tarOf(t, format, "a/", "", "a/10.0.0.1", "x\r\neth0", "a/10.0.0.2", "->../b")), func(d reaper.Document) error {
			got = append(got, fmt.Sprintf("%s %s %s %s %v %d %q", d.File, d.Place, d.Path, d.Kind, d.Mode, d.ModTime.Unix(), d.Data))
			return nil
		})
		want := []string{
			`f a/ a/  drw------- 1700000000 ""`, `f a/10.0.0.1 a/10.0.0.1  -rw------- 1700000000 "x\r\neth0"`,
			`f a/10.0.0.2 a/10.0.0.2  Lrw------- 1700000000 ""`,
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v: %v (-want +got):\n%s", format, err, diff)
		}
	}
}

func TestTarThatCannotBeRead(t *testing.T) {
	whole := tarOf(t, tar.FormatUSTAR, "a", strings.Repeat("x", 2000))
	for name, tt := range map[string]struct {
		text []byte
		want string
	}{
		"cut in a file":    {whole[:1000], "f: a: the tar is cut short"},
		"a broken sum":     {append(append(bytes.Clone(whole[:100]), '9'), whole[101:]...), "f: archive/tar: invalid tar header"},
		"too large":        {tarOf(t, tar.FormatUSTAR, "a", strings.Repeat("x", maxDocument+1)), "f: a: an object"},
		"text with a mark": {append(bytes.Repeat([]byte("x"), tarMarkAt), tarMark...), "f: the tar is cut short"},
	} {
		err := readDocuments("f", bytes.NewReader(tt.text), func(reaper.Document) error { return nil })
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
