package print

import (
	"strings"
	"testing"
)

// A name that a terminal shortens can still be copied.
func TestNoTruncPrintsWholeNames(t *testing.T) {
	r := fullReport()
	first := &r.Entries[2]
	first.Owner.Pod, first.Owner.Sandbox = strings.Repeat("checkout-", 10), strings.Repeat("0123456789abcdef", 4)
	for name, o := range map[string]Options{"table": {Format: "table", NoTrunc: true}, "wide": {Format: "wide", NoTrunc: true}} {
		text := printed(t, o, r)
		if !strings.Contains(text, first.Owner.Pod) || name == "wide" && !strings.Contains(text, first.Owner.Sandbox) {
			t.Errorf("%s shortens %s or %s", name, first.Owner.Pod, first.Owner.Sandbox)
		}
	}
	text := printed(t, Options{Format: "wide"}, r)
	if strings.Contains(text, first.Owner.Sandbox) || !strings.Contains(text, "0123456789abc… ") {
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
