package whereabouts_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// unprintable are the characters that are no letters, marks, numbers, punctuation,
// symbols, spaces or line breaks.
var unprintable = regexp.MustCompile(`[^\pL\pM\pN\pP\pS \n]`)

// The names of a pool and the message of a webhook, as the API server hands them on, reach
// no output as control characters, as lines of their own or as markup (promise 7).
func TestHostileNamesAndMessagesArePrintable(t *testing.T) {
	const message = "no\x1b[2J\x1b]0;title\x07\nip-reaper: done\r\nhint: type this\u202e\u0085 | <b> [x](http://y) @all"
	f := newFixture(t)
	f.writePool("10.0.0.0-24", "10.0.0.0/24", `{
		"1":{"id":"a","podref":"shop/web-0","ifname":"net1"},
		"2":{"id":"b\u001b[31m\n","podref":"shop/we\u001b[2Jb\nhint: type this\u202e","ifname":"\u009b31m"},
		"3":{"id":"c","podref":"| <b> [x](http://y)\u001b\u2028","ifname":"net1"},
		"x\u001b[2J":{"id":"d","podref":"shop/web-1","ifname":"net1"}}`)
	f.writeReservation("10.0.0.1", "shop/web-0")
	f.guardSaying(message, "10.0.0.1")
	before := f.store()
	for _, format := range []string{"json", "yaml", "table", "wide", "markdown"} {
		got, err := f.start("", "-o", format, "-v").Wait()
		f.must(err)
		if got.ExitCode != reap.ExitPartial || !strings.Contains(got.Stdout, "10.0.0.1") || !strings.Contains(got.Stderr, "admission webhook") {
			t.Errorf("%s: exit code %d, want %d and the webhook's denial:\n%s\n%s", format, got.ExitCode, reap.ExitPartial, got.Stdout, got.Stderr)
		}
		for _, text := range []string{got.Stdout, got.Stderr} {
			if found := unprintable.FindString(text); found != "" || !utf8.ValidString(text) {
				t.Errorf("%s has %q, or no UTF-8:\n%q", format, found, text)
			}
		}
		for line := range strings.Lines(got.Stderr) {
			if !strings.HasPrefix(line, `{"time":"`) && !strings.HasPrefix(line, "ip-reaper: overlapping: ") {
				t.Errorf("%s: stderr has the line %q", format, line)
			}
		}
		switch format {
		case "json":
			result := f.read(got)
			if e := result.entry("overlapping", "10.0.0.1"); !strings.Contains(e.Error, message) {
				t.Errorf("the error is %q, want %q in it", e.Error, message)
			}
			f.wantStore(before.without(result.lines))
		case "markdown":
			if !strings.HasPrefix(got.Stdout, "```\n") || !strings.HasSuffix(got.Stdout, "\n```\n") || strings.Count(got.Stdout, "`") != 6 {
				t.Errorf("the report is no block of code:\n%s", got.Stdout)
			}
		}
	}
	events, err := f.Kube.EventsV1().Events("").List(f.Context(), metav1.ListOptions{})
	f.must(err)
	told := false
	for _, e := range events.Items {
		if found := unprintable.FindString(e.Note); found != "" || strings.Contains(e.Note, "\n") {
			t.Errorf("the note of an event has %q: %q", found, e.Note)
		}
		told = told || strings.Contains(e.Note, `shop/we\x1b[2Jb\nhint: type this\u202e`)
	}
	if !told {
		t.Errorf("no event of %d tells of the pod with the hostile name", len(events.Items))
	}
}
