package printable_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func TestLine(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"plain text", `default/web-0 "x" C:\ <b>`, `default/web-0 "x" C:\ <b>`},
		{"other alphabets", "ünïcode 漢字 ⚠ 🙂 e\u0301", "ünïcode 漢字 ⚠ 🙂 e\u0301"},
		{"line breaks and tabs", "a\nb\r\n\tc\v\f", `a\nb\r\n\tc\v\f`},
		{"escape sequences of terminals", "\x1b[2J\x1b]0;x\x07\u009b31m\x7f\u0085", `\x1b[2J\x1b]0;x\a\u009b31m\x7f\u0085`},
		{"direction", "\u202a\u202e\u2066\u2069\u200e\u061c", `\u202a\u202e\u2066\u2069\u200e\u061c`},
		{"separators", "\u2028\u2029\u00a0\u3000", `\u2028\u2029\u00a0\u3000`},
		{"no width", "\u200b\u200d\u2060\ufeff\u00ad\ufe0f\u034f\u3164", `\u200b\u200d\u2060\ufeff\u00ad\ufe0f\u034f\u3164`},
		{"beyond 16 bits", "\U000e0041\U0010ffff", `\U000e0041\U0010ffff`},
		{"no UTF-8", "a\xffb\xed\xa0\x80", `a\xffb\xed\xa0\x80`},
		{"the replacement character", "\ufffd", "\ufffd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := printable.Line(tt.text); got != tt.want {
				t.Errorf("Line(%q) = %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

func TestLinesKeepsLineBreaksAndTabs(t *testing.T) {
	var got bytes.Buffer
	n, err := io.WriteString(printable.Lines(&got), "a\n\tb\x1b\r\n")
	if want := "a\n\tb\\x1b\\r\n"; got.String() != want || n != 7 || err != nil {
		t.Errorf("wrote %q, %d, %v, want %q", got.String(), n, err, want)
	}
}

func TestWriterReturnsTheError(t *testing.T) {
	closed, w := io.Pipe()
	_ = closed.Close()
	if n, err := io.WriteString(printable.JSON(w), "{}"); n != 0 || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Write = %d, %v, want 0 and the error", n, err)
	}
}

// What JSON writes decodes to the same text, and Line changes nothing more in it.
func TestEncodedTextStaysTheSame(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.StringOf(rapid.RuneFrom([]rune("a\\\"\x1b\n\x7f\u0085\u2028\u202e\ufeff\ufe0f\U000e0041\U0010ffff"))))
	rapid.Check(t, func(t *rapid.T) {
		want := strings.ToValidUTF8(text.Draw(t, "text"), "\ufffd")
		var asJSON bytes.Buffer
		if err := json.NewEncoder(printable.JSON(&asJSON)).Encode(want); err != nil {
			t.Fatal(err)
		}
		line := strings.TrimSuffix(asJSON.String(), "\n")
		if printable.Line(line) != line {
			t.Fatalf("%q is not printable", line)
		}
		var fromJSON string
		if err := json.Unmarshal(asJSON.Bytes(), &fromJSON); err != nil || fromJSON != want {
			t.Fatalf("JSON %s is %q, %v, want %q", asJSON.Bytes(), fromJSON, err, want)
		}
	})
}

func TestShorten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, limit := rapid.String().Draw(t, "text"), rapid.IntRange(3, 40).Draw(t, "limit")
		got := printable.Shorten(text, limit)
		switch begin, cut := strings.CutSuffix(got, "…"); {
		case len(got) > limit || !utf8.ValidString(got):
			t.Fatalf("%d bytes, want at most %d of UTF-8: %q", len(got), limit, got)
		case len(text) <= limit && got != text:
			t.Fatalf("Shorten(%q) = %q, want the text", text, got)
		case len(text) > limit && (!cut || !strings.HasPrefix(text, begin) || len(begin) < limit-len("…")-utf8.UTFMax):
			t.Fatalf("Shorten(%q) = %q, want its beginning", text, got)
		}
	})
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := printable.Thousands(n); got != want {
			t.Errorf("Thousands(%d) = %q, want %q", n, got, want)
		}
	}
}
