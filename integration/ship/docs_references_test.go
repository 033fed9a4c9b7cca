package ship_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// A link of a page leads to a page, and to a heading there.
func TestLinksLeadSomewhere(t *testing.T) {
	dir := root(t)
	followed := 0
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.prose(), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			followed++
			to := filepath.Join(dir, p.path)
			if target != "" {
				to = filepath.Join(dir, filepath.Dir(p.path), target)
			}
			text, err := os.ReadFile(to)
			if info, statErr := os.Stat(to); statErr == nil && info.IsDir() {
				err = nil
			}
			switch {
			case err != nil:
				t.Errorf("%s: link to %s: %v", p.path, m[1], err)
			case anchor != "" && !slices.Contains(anchors(string(text)), anchor):
				t.Errorf("%s: link to %s: no heading there has that anchor", p.path, m[1])
			}
		}
	}
	if followed == 0 {
		t.Error("no page has a link")
	}
}

var (
	heading   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are what GitHub makes of the headings of a page.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		slug := notInSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(slug, " ", "-"))
	}
	return all
}

var inRepository = regexp.MustCompile(`^(deploy|docs|integration|backends|policy|reaper)/[\w./*<>-]*$`)

// A page names files that there are.
func TestPathsThatAreNamedExist(t *testing.T) {
	dir := root(t)
	named := 0
	for _, p := range pages(t) {
		for _, span := range p.spans() {
			if !inRepository.MatchString(span) || strings.Contains(span, "<") {
				continue
			}
			named++
			found, err := filepath.Glob(filepath.Join(dir, span))
			if err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which is not there", p.path, span)
			}
		}
	}
	if named == 0 {
		t.Error("no page names a path")
	}
}

// othersFlags are flags of other programs that the pages speak of.
var othersFlags = []string{"--create-namespace", "--data-dir", "--kube-version", "--root-dir", "--for", "--from", "--set", "--take-ownership", "--privileged"}

var flagName = regexp.MustCompile(`--[a-z][a-z-]+`)

// A page names flags that the program has.
func TestFlagsThatAreNamedExist(t *testing.T) {
	var help string
	for _, args := range [][]string{
		{"--help"}, {"run", "--help"}, {"restore", "--help"}, {"inspect", "--help"}, {"status", "--help"}, {"explain", "--help"}, {"pools", "--help"},
		{"history", "--help"}, {"node", "--help"}, {"policy", "install", "--help"},
	} {
		help += printed(t, args...)
	}
	known := flagName.FindAllString(help, -1)
	named := 0
	for _, p := range pages(t) {
		for _, span := range p.spans() {
			if !strings.HasPrefix(span, "--") {
				continue
			}
			for _, flag := range flagName.FindAllString(span, -1) {
				named++
				if !slices.Contains(known, flag) && !slices.Contains(othersFlags, flag) {
					t.Errorf("%s names the flag %s, which ip-reaper does not have", p.path, flag)
				}
			}
		}
	}
	if named == 0 {
		t.Error("no page names a flag")
	}
}

var exitCode = regexp.MustCompile(`(?m)^  (\d+) +(.+(?:\n       .+)*)$`)

// The page says of each exit code what the help says.
func TestExitCodesAreThoseOfTheHelp(t *testing.T) {
	want := map[string]string{}
	for _, m := range exitCode.FindAllStringSubmatch(printed(t, "help", "exit-codes"), -1) {
		want[m[1]] = strings.Join(strings.Fields(m[2]), " ")
	}
	got := map[string]string{}
	for _, row := range rows(t, "docs/report.md", "exit code") {
		got[row[0]] = row[1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exit codes (-help +page):\n%s", diff)
	}
}

// A reason is a constant, and a fate has its word in a table.
var (
	reasonWord = regexp.MustCompile(`(?m)^\t\w+ +Reason += "(\w+)"`)
	fateWords  = regexp.MustCompile(`(?ms)^var words = \[\.\.\.\]string\{\n(.*?)^\}`)
	fateWord   = regexp.MustCompile(`: +"([^"]+)"`)
)

// The pages tell of each reason and each outcome, and their tables have no other.
func TestPagesHaveEachWordOfTheReport(t *testing.T) {
	want := map[string][]string{}
	must(t, filepath.WalkDir(filepath.Join(root(t), "reaper"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range reasonWord.FindAllStringSubmatch(string(text), -1) {
			want["reason"] = append(want["reason"], m[1])
		}
		for _, table := range fateWords.FindAllStringSubmatch(string(text), -1) {
			for _, m := range fateWord.FindAllStringSubmatch(table[1], -1) {
				want["outcome"] = append(want["outcome"], m[1])
			}
		}
		return err
	}))
	if len(want["reason"]) == 0 || len(want["outcome"]) == 0 {
		t.Fatal("the words of the report are not where they were")
	}
	var told []string
	for _, p := range pages(t) {
		told = append(told, p.spans()...)
	}
	for heading, words := range want {
		for _, word := range words {
			if !slices.Contains(told, word) {
				t.Errorf("no page has the %s %s", heading, word)
			}
		}
		for _, cell := range column(t, heading) {
			for _, m := range codeSpan.FindAllStringSubmatch(cell, -1) {
				if !slices.Contains(words, m[1]) {
					t.Errorf("a table has the %s %s, which no report has", heading, m[1])
				}
			}
		}
	}
}
