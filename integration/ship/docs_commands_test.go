package ship_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// On each page, an operator with an outage types the commands of the page one after the
// other. The commands of the pages that name roles are typed by each of them, too.
func TestCommandsDoWhatThePagesSay(t *testing.T) {
	withCommands := slices.DeleteFunc(pages(t), func(p page) bool { return !slices.ContainsFunc(p.commands(), runsHere) })
	if len(withCommands) == 0 {
		t.Fatal("no page has a command")
	}
	for _, p := range withCommands {
		name := strings.TrimSuffix(strings.ReplaceAll(p.path, "/", "_"), ".md")
		t.Run(name, func(t *testing.T) { newOperator(t, p).read(p) })
		if slices.Contains([]string{"docs/install.md", "docs/outage.md", "docs/policy.md"}, p.path) {
			t.Run(name+"_with_the_roles_of_people", func(t *testing.T) { newOperator(t, p).with(leastRole).read(p) })
			t.Run(name+"_in_the_group_of_operators", func(t *testing.T) { newOperator(t, p).with(member).read(p) })
		}
	}
}

// read types the commands of the page.
func (o *operator) read(p page) {
	o.Helper()
	for _, b := range p.blocks {
		if file := b.file(); file != "" {
			o.write(file, b.text())
		}
		for _, c := range b.commands() {
			if o.who != nil {
				o.person = o.who(p.sentenceBefore(b), c.typed)
			}
			o.follow(p, c)
		}
	}
}

// runsHere reports whether a command is run, or another in its stead.
// TestCommandsOnANodeDoWhatThePageSays follows those of a node.
func runsHere(c command) bool {
	e, elsewhere := cannotRun(c.typed)
	return !onNode(c.typed) && (!elsewhere || e.instead != nil)
}

// follow does what a command of the page asks for.
func (o *operator) follow(p page, c command) {
	o.Helper()
	if !runsHere(c) {
		return
	}
	typed := o.standIn(c.typed)
	var out string
	var err error
	if e, ok := cannotRun(typed); ok {
		out, err = e.instead(o, typed)
	} else {
		out, err = o.bash(typed)
	}
	c.prints(o.T, p, out, err, o.standIn)
	o.controllers()
}

// prints ends the test if the command failed, and fails it unless the output is what the page
// shows.
func (c command) prints(t *testing.T, p page, out string, err error, standIn func(string) string) {
	t.Helper()
	at := fmt.Sprintf("%s:%d: $ %s", p.path, c.line, c.typed)
	if err != nil {
		t.Fatalf("%s\n%v\n%s", at, err, out)
	}
	t.Log(at)
	for _, line := range c.output {
		if !shown(standIn(line)).MatchString(out) {
			t.Errorf("%s\ndoes not print\n%s\nbut\n%s", at, line, out)
		}
	}
}

// shown matches output that has the line. White space may be any, and … stands for
// any text on that line.
func shown(line string) *regexp.Regexp {
	var words []string
	for word := range strings.FieldsSeq(line) {
		if word == "…" {
			word = `.*`
		} else {
			word = regexp.QuoteMeta(word)
		}
		words = append(words, word)
	}
	return regexp.MustCompile(strings.Join(words, `[ \t]*`))
}

// exampleRun is the ID of a run in the pages.
const exampleRun = "20261120-150405-ABCDEF"

// standIn replaces the run of the pages by the last one that released something.
func (o *operator) standIn(text string) string { return standIn(o.T, text, o.lastRun) }

// standIn replaces the run of the pages by the last one, if the text has it.
func standIn(t *testing.T, text string, lastRun func() string) string {
	t.Helper()
	if !strings.Contains(text, exampleRun) {
		return text
	}
	run := lastRun()
	if run == "" {
		t.Fatalf("no run before this has released anything, and it needs one: %s", text)
	}
	return strings.ReplaceAll(text, exampleRun, run)
}

// write writes a file that a page shows.
func (o *operator) write(name, text string) {
	o.Helper()
	path := o.path(name)
	must(o, os.MkdirAll(o.path(name, ".."), 0o700))
	must(o, os.WriteFile(path, []byte(text), 0o600))
}
