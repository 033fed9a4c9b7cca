package print

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// pageOf returns the HTML of a view.
func pageOf(t rapid.TB, v view) string {
	t.Helper()
	var out bytes.Buffer
	if err := printHTML(&out, v); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// wantPage fails the test unless a page has the elements of any page, allows itself its own
// style and script and nothing else, and has the value of the report as data.
func wantPage(t rapid.TB, text string, v view) {
	t.Helper()
	style, script := join(styles), join(scripts)
	data, elements := partsOf(t, text)
	if want := partsOfAnyPage(t); !slices.Equal(want, elements) {
		t.Fatalf("the page has other elements (-want +got):\n%s", cmp.Diff(want, elements))
	}
	for _, want := range []string{
		"<style>" + style + "</style>", `<script type="module">` + script + "</script>",
		fmt.Sprintf(`content="default-src 'none'; script-src %s; style-src %s; base-uri 'none'; form-action 'none'"`, sourceOf(script), sourceOf(style)),
	} {
		if strings.Count(text, want) != 1 {
			t.Fatalf("the page does not have once:\n%s", want)
		}
	}
	value, err := json.Marshal(v.value)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Report any }
	var want any
	if err := json.Unmarshal([]byte(data), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(value, &want); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(want, got.Report) {
		t.Fatalf("the data of the page is not the report (-want +got):\n%s", cmp.Diff(want, got.Report))
	}
}

var anyPage []string

// partsOfAnyPage returns the parts of the page of an empty report. It parses that once.
func partsOfAnyPage(t rapid.TB) []string {
	t.Helper()
	if anyPage == nil {
		_, anyPage = partsOf(t, pageOf(t, viewOf(emptyReport(), false)))
	}
	return anyPage
}

func sourceOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// partsOf parses a page as browsers do. It returns the data, and each tag, text and comment
// in their order, without the data.
func partsOf(t rapid.TB, page string) (data string, parts []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for node := range root.Descendants() {
		if parent := node.Parent; node.Type == html.TextNode && len(parent.Attr) > 0 && parent.Attr[len(parent.Attr)-1].Val == "data" {
			data = node.Data
			continue
		}
		parts = append(parts, fmt.Sprint(node.Type, node.Data, node.Attr))
	}
	return data, parts
}

// The page has one letter for each entry, and shows the bottom line first.
func TestPageTellsTheStateOfEachEntry(t *testing.T) {
	data, _ := partsOf(t, pageOf(t, viewOf(fullReport(), false)))
	var got pageData
	if err := json.Unmarshal([]byte(data), &got); err != nil {
		t.Fatal(err)
	}
	if want := fullReport().BottomLine(); got.BottomLine != want || got.States != "iiwrcifduuo" {
		t.Errorf("bottom line %q, states %s, want %q, iiwrcifduuo", got.BottomLine, got.States, want)
	}
}

// Promise 7: the states of the page add up to the counts of the report.
func TestStateOfAnEntry(t *testing.T) {
	for _, tt := range []struct {
		name  string
		entry report.Entry
		want  byte
	}{
		{"nothing is known", report.Entry{}, 'o'},
		{"in use", report.Entry{Verdict: judge.InUse, Outcome: report.Kept}, 'i'},
		{"waiting", report.Entry{Verdict: judge.Suspected, Leaked: true, Outcome: report.Kept}, 'w'},
		{"due in a run that was refused", report.Entry{Verdict: judge.Orphaned, Leaked: true, Outcome: report.Kept}, 'd'},
		{"due in a dry run", report.Entry{Verdict: judge.Orphaned, Leaked: true, Outcome: report.Planned}, 'd'},
		{"held", report.Entry{Verdict: judge.Held, Leaked: true, Reason: judge.RuleHold, Outcome: report.Kept}, 'h'},
		{"held, and not a pod's", report.Entry{Verdict: judge.Held, Reason: judge.NotPodOwned, Outcome: report.Kept}, 'n'},
		{"undecided", report.Entry{Verdict: judge.Held, Reason: judge.OwnerUnknown, Outcome: report.Kept}, 'u'},
		{"protected", report.Entry{Verdict: judge.Held, Leaked: true, Reason: judge.Protected, Outcome: report.Kept}, 'p'},
		{"released", report.Entry{Verdict: judge.Orphaned, Leaked: true, Outcome: report.Released}, 'r'},
		{"the release failed", report.Entry{Verdict: judge.Orphaned, Leaked: true, Outcome: report.Failed}, 'f'},
		{"due, and another allocation of the address is in use", report.Entry{Verdict: judge.Orphaned, Leaked: true, Outcome: report.Kept, Address: &report.Address{Fate: report.InUse}}, 'o'},
		{"the owner came back", report.Entry{Verdict: judge.Orphaned, Leaked: true, Outcome: report.Returned}, 'i'},
		{"changed hands", report.Entry{Verdict: judge.Orphaned, Leaked: true, Outcome: report.Changed}, 'c'},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := looks[fateOnPage(&tt.entry)].letter; got != tt.want {
				t.Errorf("letter %c, want %c", got, tt.want)
			}
		})
	}
}
