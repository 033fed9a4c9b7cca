package report

import (
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// wideLines returns the lines of a text that are wider than a terminal.
func wideLines(text string) (wide []string) {
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 120 {
			wide = append(wide, line)
		}
	}
	return wide
}

func TestTableFits120Columns(t *testing.T) {
	for _, wide := range wideLines(printed(t, Options{Format: "table"}, largeReport())) {
		t.Errorf("%d characters: %s", utf8.RuneCountInString(wide), wide)
	}
}

// Every table fits, whichever of the longest names that Kubernetes allows are in it.
func TestTablesFitWhateverTheirNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := func(most int) string { return strings.Repeat("n", rapid.IntRange(0, most).Draw(t, "size")) }
		r := emptyReport()
		for range rapid.IntRange(1, 5).Draw(t, "entries") {
			ip := rapid.SampledFrom([]string{"", "10.0.0.1", "fd00:1111:2222:3333:4444:5555:6666:7777"}).Draw(t, "ip")
			e := reaper.Entry{
				Backend: rapid.SampledFrom([]string{"whereabouts", "calico"}).Draw(t, "backend"),
				Pool:    name(253), Key: name(253), IP: ip, Note: name(900),
				Owner:   reaper.EntryOwner{Namespace: name(63), Pod: name(253), Node: name(253)},
				Verdict: reaper.Suspected, Reason: reaper.SandboxReplaced, Outcome: reaper.Returned,
			}
			if rapid.Bool().Draw(t, "many") {
				for range 8 { // 50 are shown
					r.Entries = append(r.Entries, e)
				}
			}
			r.Entries = append(r.Entries, e)
			r.Backends = append(r.Backends, reaper.BackendReport{Name: e.Backend, Message: name(4096), Counts: reaper.Counts{Released: 1, Changed: 1, Failed: 1}})
			r.Pools = append(r.Pools, reaper.PoolReport{Name: e.Pool, Range: "fd00:1111:2222:3333::/64", Usage: reaper.Usage{Capacity: big.NewInt(1 << 62), Leaked: 1, Protected: 1}})
		}
		text := printed(t, Options{Format: "table"}, r)
		if wide := wideLines(text); len(wide) > 0 {
			t.Fatalf("%d characters: %s", utf8.RuneCountInString(wide[0]), wide[0])
		}
		for _, e := range r.Entries {
			if !strings.Contains(text, e.IP) {
				t.Fatalf("the address %s is shortened:\n%s", e.IP, text)
			}
		}
	})
}

func TestNoTruncPrintsWholeNames(t *testing.T) {
	r := largeReport()
	first := r.Entries[0]
	for _, e := range r.Entries {
		if e.Verdict == reaper.Orphaned {
			first = e
			break
		}
	}
	for name, o := range map[string]Options{"table": {Format: "table", NoTrunc: true}, "wide": {Format: "wide", NoTrunc: true}} {
		text := printed(t, o, r)
		if !strings.Contains(text, first.Owner.Pod) || name == "wide" && !strings.Contains(text, first.Owner.Sandbox) {
			t.Errorf("%s shortens %s or %s", name, first.Owner.Pod, first.Owner.Sandbox)
		}
	}
	if text := printed(t, Options{Format: "wide"}, r); strings.Contains(text, first.Owner.Sandbox) || !strings.Contains(text, "0123456789abc… ") {
		t.Error("wide does not shorten a sandbox ID to the 13 characters that crictl shows")
	}
}

func TestShortenedNamesKeepBothEnds(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  string
	}{
		{"web-0", 5, "web-0"}, {"checkout-7d9f-x2b4q", 9, "chec…2b4q"}, {"äöüäöüäöü", 4, "ä…öü"}, {"", 3, ""},
	} {
		if got := middle(tt.text, tt.width); got != tt.want {
			t.Errorf("middle(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

// A note is beside its row if it has room there. Elsewhere it is whole below it.
func TestNoteWithoutRoomIsBelowItsRow(t *testing.T) {
	long := strings.Repeat("not decided ", 12)
	got := layout{width: maxWidth}.lines(table{
		heading: []string{"IP", "POOL", "OUTCOME", "NOTE"},
		rows:    [][]string{{"10.0.0.1", "p", "kept", "due"}, {"10.0.0.10", "p", "failed", long}},
	})
	want := []string{
		"IP         POOL  OUTCOME  NOTE",
		"10.0.0.1   p     kept     due",
		"10.0.0.10  p     failed",
		"  ↳ " + strings.Repeat("not decided ", 9) + "not",
		"    decided not decided not decided",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the lines differ (-want +got):\n%s", diff)
	}
}
