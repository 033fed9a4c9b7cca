package journal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// A file that holds no journal was named by mistake.
func TestFileWithoutAJournalIsRefused(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "f: unexpected end of JSON input"},
		{"cut short", `{"kind": "RunHistory", "runs": [{`, "f: unexpected end of JSON input"},
		{"a list of runs", `{"kind": "RunHistory", "runs": [{"id": "a"}, {"id": "b"}]}`, "f: it is not the history of one run"},
		{"a report", `{"kind": "ReapReport", "entries": []}`, "f: it is not the history of one run"},
		{"a part", string(encode(t, 1, record("1", `{}`))[0]), "f: it is not the history of one run"},
		{"an ID that is none", `{"runs": [{"id": "../a", "journal": {"damage": ["x"]}}]}`, "f: it is not the history of one run"},
		{"a run that released nothing", `{"runs": [{"id": "a", "entries": []}]}`, "f: no journal of run a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			past, err := journal.Read("f", strings.NewReader(tt.text))
			var input *ipam.InputError
			if !errors.As(err, &input) || err.Error() != tt.want || !strings.Contains(input.Hint, "history --run ID -o json") {
				t.Errorf("%v, want %s, and the command that prints one", err, tt.want)
			}
			equal(t, "records", len(past.Records), 0)
		})
	}
}

// Promise 10: what can be read can be put back, and the rest is reported.
func TestDamageOfAPrintedJournalIsTold(t *testing.T) {
	first, second := string(encode(t, 1, record("1", `{}`))[0]), string(encode(t, 2, record("2", `{}`))[0])
	for _, tt := range []struct {
		name          string
		parts, damage []string
		keys          string
		want          string // in the error; empty for none
	}{
		{"whole", []string{first, second}, nil, "1 2", ""},
		{"history could not read the rest", []string{first}, []string{`"write 2 lacks 1 of 3 parts"`}, "1", "f: the journal is damaged; history said: write 2 lacks 1 of 3 parts"},
		{"history could read nothing", nil, []string{`"junk"`}, "", "history said: junk"},
		{"of a newer version", []string{first, strings.Replace(second, `"version":1,`, `"version":2,`, 1)}, nil, "1", "f, part 2: the journal is damaged: the part has version 2, this program reads 1: use the newer ip-reaper"},
		{"of another run", []string{first, strings.Replace(second, "ABCDEF", "GHIJKL", 1)}, nil, "1", `f, part 2 is part of run "20260301-120000-GHIJKL"`},
		{"a part was cut out", []string{second}, nil, "2", "1 of 2 writes are missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := fmt.Sprintf(`{"kind": "RunHistory", "runs": [{"id": %q, "journal": {"parts": [%s], "damage": [%s]}}]}`,
				journaled.ID, strings.Join(tt.parts, ","), strings.Join(tt.damage, ","))
			past, err := journal.Read("f", strings.NewReader(text))
			equal(t, "records", keys(past), tt.keys)
			equal(t, "run", past.Run.ID, journaled.ID)
			if errors.Is(err, journal.ErrDamaged) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want damage %q", err, tt.want)
			}
		})
	}
}
