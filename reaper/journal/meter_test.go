package journal_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// Many small parts are no way around the limit, and a part that is read again counts once.
func TestPartsBeyondTheLimitAreNotRead(t *testing.T) {
	good := encode(t, 1, record("7", `{}`))[0]
	for name, filler := range map[string][]byte{"large parts": make([]byte, journal.MaxPart), "small parts": nil} {
		t.Run(name, func(t *testing.T) {
			var m journal.Meter
			fit := journal.MaxSize / max(len(filler), 8<<10)
			for n := range fit {
				if got := m.Decode(fmt.Sprint(n), filler); got.Err == nil || strings.Contains(got.Err.Error(), "together") {
					t.Fatalf("part %d of %d: %v", n, fit, got.Err)
				}
			}
			if got := m.Decode("0", good); got.Err != nil || len(got.Part.Records) != 1 {
				t.Errorf("a part again: %v", got.Err)
			}
			m.Decode("0", filler)
			got := m.Decode("last", append(good, make([]byte, journal.MaxPart-len(good))...))
			if !errors.Is(got.Err, journal.ErrDamaged) || !strings.Contains(got.Err.Error(), "more than 256 MiB together") {
				t.Errorf("the part beyond: %v", got.Err)
			}
		})
	}
}

// An endless repeats a text without an end.
type endless struct{ text string }

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(e.text) <= len(p) {
		n += copy(p[n:], e.text)
	}
	return n, nil
}

// What was read before the limit can be restored, and the rest is damage.
func TestAFileWithoutAnEndIsDamaged(t *testing.T) {
	good := string(encode(t, 1, record("7", `{}`))[0]) + "\n"
	for _, tt := range []struct{ name, repeat, says string }{
		{"empty lines", "\n", "damaged or missing parts"},
		{"/dev/zero", "\x00", "too long for a part"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stored, err := journal.ReadParts("f", io.MultiReader(strings.NewReader(good), endless{tt.repeat}))
			if err != nil {
				t.Fatal(err)
			}
			got, err := journal.Assemble(journaled.ID, stored)
			if !errors.Is(err, journal.ErrDamaged) || len(got.Records) != 1 {
				t.Fatalf("%d records, %v", len(got.Records), err)
			}
			if text := err.Error(); len(text) > 10_000 || !strings.Contains(text, tt.says) {
				t.Errorf("the error has %d bytes, want %q in it: %.10000s", len(text), tt.says, text)
			}
		})
	}
}
