package upgrade_test

import (
	"encoding/json"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promises 1, 2, 8 and 10. This version takes over what each earlier version left, as it was
// recorded: with a ledger in one ConfigMap, and in many.
func TestRecordedStateIsTakenOver(t *testing.T) {
	for _, r := range recordings(t) {
		for _, form := range []string{small, sharded} {
			t.Run(r.revision+" "+form, func(t *testing.T) {
				s, l := replay(t, r, form)
				if n := s.ledgerMaps(); (n == reaper.LedgerShards) != (form == sharded) {
					t.Fatalf("the ledger is in %d ConfigMaps", n)
				}
				s.inherits(current(t), l.replayable())
			})
		}
	}
}

// replay returns a scene with what a version left there.
func replay(t *testing.T, r recording, form string) (*scene, legacy) {
	t.Helper()
	l := read[legacy](t, r, form)
	s := newScene(t, read[cast](t, r, "before"))
	s.must(l.Stores.store(t).Put(t.Context(), s.Cluster))
	s.setConfigMaps(l.ConfigMaps)
	s.setLease(l.Killed)
	return s, l
}

// Promises 1, 2, 8 and 10. What this version leaves is taken over by the version that was
// recorded last, and the other way round; and two of them never run at the same time.
func TestEarlierVersionAndThisOneTakeOverFromEachOther(t *testing.T) {
	r := recordings(t)[0]
	now, then := current(t), earlier(t, r.revision)
	before := read[cast](t, r, "before")
	for _, tt := range []struct {
		name     string
		from, to program
		form     string
	}{
		{"upgrade", then, now, small},
		{"downgrade", now, then, small},
		{"downgrade of a large ledger", now, then, sharded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, before)
			s.begin(tt.form)
			l := s.leave(tt.from)
			s.inherits(tt.to, l)
		})
	}
	t.Run("together", func(t *testing.T) {
		s := newScene(t, before)
		s.together(then, now)
		s.together(now, then)
	})
	t.Run("node", func(t *testing.T) {
		nodesTakeOver(t, then, now)
		nodesTakeOver(t, now, then)
	})
	t.Run("policy", func(t *testing.T) {
		s := newScene(t, before)
		state := s.state()
		s.refuses(then, futurePolicy)
		s.wantState(state)
	})
}

// What is missing from JSON, or has another value, is found; what it has beyond that is not.
func TestLossIsFound(t *testing.T) {
	const was = `{"a":1,"b":{"c":["x",true]},"d":null}`
	for is, want := range map[string]int{
		was: 0,
		`{"a":1,"b":{"c":["x",true],"new":1},"d":null,"new":[]}`: 0,
		`{"a":2,"b":{"c":["x",true]},"d":null}`:                  1,
		`{"a":1,"b":{"c":["x"]},"d":null}`:                       1,
		`{"a":1,"b":{"c":["x",false]},"d":0}`:                    2,
		`{"a":1,"b":[],"d":null}`:                                1,
		`{}`:                                                     3, `[]`: 3,
	} {
		var before, after any
		decode(t, json.RawMessage(was), &before)
		decode(t, json.RawMessage(is), &after)
		if got := lost("", before, after); len(got) != want {
			t.Errorf("%s lost %q, want %d", is, got, want)
		}
	}
}
