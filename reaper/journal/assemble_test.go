package journal_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// chapters are the parts of a journal of two writes, of three parts and one, whose
// records have the keys 1 to 4.
func chapters(t *testing.T) [][]byte {
	t.Helper()
	large := `"` + strings.Repeat("x", 500<<10) + `"`
	parts := append(encode(t, 1, record("1", large), record("2", large), record("3", large)), encode(t, 2, record("4", `{}`))...)
	equal(t, "parts", len(parts), 4)
	return parts
}

// keys are those of the records.
func keys(j journal.Journal) string {
	var all []string
	for _, r := range j.Records {
		all = append(all, r.Key)
	}
	return strings.Join(all, " ")
}

// Promise 10: the readable records can be put back, and the error names the damage.
func TestDamageIsToldAndTheRestIsRead(t *testing.T) {
	whole := chapters(t)
	edited := func(i int, was, now string) []byte {
		t.Helper()
		text := bytes.Replace(whole[i], []byte(was), []byte(now), 1)
		if bytes.Equal(text, whole[i]) {
			t.Fatalf("part %d has no %s", i+1, was)
		}
		return text
	}
	for _, tt := range []struct {
		name  string
		parts [][]byte
		keys  string
		want  []string // in the error
	}{
		{"in another order", [][]byte{whole[3], whole[2], whole[0], whole[1]}, "1 2 3 4", nil},
		{"the first is missing", whole[1:], "2 3 4", []string{"write 1 lacks 1 of 3 parts"}},
		{"the last write is missing", whole[:3], "1 2 3", nil},
		{"junk", [][]byte{whole[0], []byte("junk"), whole[2], whole[3]}, "1 3 4", []string{"place 2: ", "write 1 lacks 1 of 3 parts"}},
		{"a newer version", [][]byte{whole[0], whole[1], whole[2], edited(3, `"version":1,`, `"version":2,`)}, "1 2 3", []string{
			"place 4: ", "use the newer ip-reaper",
		}},
		{"another run's", [][]byte{whole[0], edited(1, "ABCDEF", "GHIJKL"), whole[2], whole[3]}, "1 3 4", []string{
			`place 2 is part of run "20260301-120000-GHIJKL"`, "write 1 lacks 1 of 3 parts",
		}},
		{"another cluster's", [][]byte{whole[0], whole[1], whole[2], edited(3, "https://cluster", "https://other")}, "1 2 3", []string{
			"place 4 describes the run differently than place 1",
		}},
		{"twice", append([][]byte{whole[3]}, whole...), "1 2 3 4", []string{"place 1 and place 5 are both part 1 of write 2"}},
		{"twice, and they differ", append([][]byte{edited(3, `"key":"4"`, `"key":"5"`)}, whole...), "1 2 3", []string{
			"place 1 and place 5 are both part 1 of write 2",
		}},
		{"of fewer parts", [][]byte{whole[0], whole[1], edited(2, `"parts":3`, `"parts":4`), whole[3]}, "1 2 3 4", []string{
			"place 3 counts 4 parts, other parts of write 1 count 3", "write 1 lacks 1 of 4 parts",
		}},
		{"very many parts", [][]byte{edited(3, `"write":2,"part":1,"parts":1`, `"write":1,"part":1,"parts":1073741824`)}, "4", []string{
			"write 1 lacks 1073741823 of 1073741824 parts",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			past, err := journal.Assemble(journaled.ID, decoded(tt.parts...))
			equal(t, "records", keys(past), tt.keys)
			equal(t, "run", past.Run.ID, journaled.ID)
			if errors.Is(err, journal.ErrDamaged) != (tt.want != nil) {
				t.Fatalf("error %v, want damage: %v", err, tt.want)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
		})
	}
}
