package ship_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// A page is one document.
type page struct {
	path   string // from the repository's root
	text   string
	blocks []block
}

// A block is what stands between two fences.
type block struct {
	kind  string // such as console or yaml; may be empty
	line  int    // of its first line, from 1
	lines []string
}

// A command is a line of a console block that begins with $, and what the page
// shows below it of its output.
type command struct {
	line   int
	typed  string
	output []string
}

// root is the repository's.
func root(t testing.TB) string {
	t.Helper()
	dir, err := assets.Root()
	must(t, err)
	return filepath.Dir(dir)
}

// pages returns the documents for users, in the order in which one would read them.
func pages(t testing.TB) []page {
	t.Helper()
	all, err := readPages()
	must(t, err)
	return all
}

// firstPages are the documents outside of docs and deploy, all of whose pages are read
// too.
var firstPages = []string{
	"README.md", "SECURITY.md", "CONTRIBUTING.md", "GOVERNANCE.md", "CODE_OF_CONDUCT.md", "integration/README.md",
}

func readPages() ([]page, error) {
	integration, err := assets.Root()
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(integration)
	var paths []string
	for _, page := range firstPages {
		paths = append(paths, filepath.Join(dir, page))
	}
	docs, err := filepath.Glob(filepath.Join(dir, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	paths = append(paths, docs...)
	err = filepath.WalkDir(filepath.Join(dir, "deploy"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []page
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		short, err := filepath.Rel(dir, path)
		if err != nil {
			return nil, err
		}
		all = append(all, page{filepath.ToSlash(short), string(text), blocks(string(text))})
	}
	return all, nil
}

var fence = regexp.MustCompile("^( *)```(\\w*)")

// blocks finds the fenced blocks of a text. What the first fence is indented by is
// taken off every line.
func blocks(text string) []block {
	var all []block
	var open *block
	indent := ""
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case m != nil && open == nil:
			open, indent = &block{kind: m[2], line: i + 2}, m[1]
		case m != nil:
			all, open = append(all, *open), nil
		case open != nil:
			open.lines = append(open.lines, strings.TrimPrefix(line, indent))
		}
	}
	return all
}

// commands returns those of a console block. A line that ends with a backslash goes
// on in the next.
func (b block) commands() []command {
	if b.kind != "console" {
		return nil
	}
	var all []command
	more := false
	for i, line := range b.lines {
		typed, ok := strings.CutPrefix(line, "$ ")
		switch {
		case more:
			all[len(all)-1].typed += "\n" + line
			typed = line
		case ok:
			all = append(all, command{line: b.line + i, typed: typed})
		case len(all) > 0 && strings.TrimSpace(line) != "":
			last := &all[len(all)-1]
			last.output = append(last.output, line)
		}
		more = (ok || more) && strings.HasSuffix(typed, `\`)
	}
	return all
}

// commands returns those of the whole page.
func (p page) commands() []command {
	var all []command
	for _, b := range p.blocks {
		all = append(all, b.commands()...)
	}
	return all
}

// file returns the path that a block gives to itself in a comment on its first
// line; empty if it gives none.
func (b block) file() string {
	if len(b.lines) == 0 {
		return ""
	}
	name, ok := strings.CutPrefix(b.lines[0], "# ")
	if !ok || filepath.Ext(name) == "" || strings.Contains(name, " ") {
		return ""
	}
	return name
}

// text is the block's content.
func (b block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// prose returns the page without its blocks.
func (p page) prose() string {
	lines := strings.Split(p.text, "\n")
	for _, b := range p.blocks {
		for i := range b.lines {
			lines[b.line-1+i] = ""
		}
	}
	// The fences that are left hold nothing between them.
	lines = slices.DeleteFunc(lines, fence.MatchString)
	return strings.Join(lines, "\n")
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// spans returns what the prose has between backticks.
func (p page) spans() []string {
	var all []string
	for _, m := range codeSpan.FindAllStringSubmatch(p.prose(), -1) {
		all = append(all, strings.Join(strings.Fields(m[1]), " "))
	}
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tables returns the cells of the page's tables, that of the headings first.
func (p page) tables() [][][]string {
	var all [][][]string
	inside := false
	for line := range strings.Lines(p.text) {
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !inside:
			all = append(all, nil)
		case strings.Trim(strings.Join(cells, ""), ":-") == "":
			continue
		}
		inside = true
		all[len(all)-1] = append(all[len(all)-1], cells)
	}
	return all
}
