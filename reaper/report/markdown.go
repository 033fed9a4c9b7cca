package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// maxPage is the most bytes of a page for a chat. A comment on GitHub has at most 65,536
// characters.
const maxPage = 60_000

// printMarkdown prints the tables for an issue or a chat. It cuts off what is more than
// maxPage, entries first, and says so.
func printMarkdown(w io.Writer, v reportView) error {
	tables := v.tables
	if v.chat != nil {
		tables = func(bool) []table { return v.chat() }
	}
	p := page{left: maxPage - len(cutOff(1<<40))}
	head := p.lines(headMarkdown(v))
	conclusion := p.lines(paragraphs("", v.conclusion))
	const share = 4 // of the page: for warnings, and for the tables that are not folded away
	warnings := p.part(share).lines(paragraphs("**Warning:** ", v.warnings))
	var open, closed string
	for _, t := range tables(false) {
		switch {
		case len(t.rows)+len(t.folds) == 0:
		case t.details:
			closed += p.details(t)
		default:
			open += p.table(t)
		}
	}
	rest := ""
	if p.cut > 0 {
		rest = cutOff(p.cut)
	}
	_, err := io.WriteString(w, head+warnings+open+closed+rest+conclusion)
	return err
}

// cutOff is the sentence about the lines that are not on the page.
func cutOff(lines int) string {
	return fmt.Sprintf("… %s left out, because a page has at most %s bytes; `-o json --all` has everything\n\n", counted(lines, "line"), printable.Thousands(maxPage))
}

// A page counts what still has room on it, and the lines that have not.
type page struct {
	left int
	cut  int
	of   *page // the page that this is a part of; nil: it is a whole one
}

// part returns a part of what is left.
func (p *page) part(share int) *page { return &page{left: p.left / share, of: p} }

// take reports whether a text has room, and takes the room.
func (p *page) take(size int) bool {
	if size > p.left || p.of != nil && !p.of.take(size) {
		return false
	}
	p.left -= size
	return true
}

// miss counts lines that have no room.
func (p *page) miss(lines int) {
	if p.of != nil {
		p.of.miss(lines)
		return
	}
	p.cut += lines
}

// lines returns as many lines as have room, from the first one on.
func (p *page) lines(lines []string) string {
	var text strings.Builder
	for i, line := range lines {
		if !p.take(len(line) + 1) {
			p.miss(len(lines) - i)
			break
		}
		text.WriteString(line + "\n")
	}
	return text.String()
}

// table returns a table with its title above it and its folds below it.
func (p *page) table(t table) string {
	t, _ = fit(t, fitting{optional: true})
	var above, rows []string
	if t.title != "" && !t.details {
		above = append(above, "**"+markdown(cell(t.title))+"**", "")
	}
	above = append(above, "| "+strings.Join(t.heading, " | ")+" |", "|"+strings.Repeat(" --- |", len(t.heading)))
	for _, row := range t.rows {
		for i, text := range row {
			row[i] = markdown(text)
		}
		rows = append(rows, "| "+strings.Join(row, " | ")+" |")
	}
	if !p.take(len(strings.Join(above, "\n")) + len("\n\n")) {
		p.miss(len(rows) + len(t.folds))
		return ""
	}
	text := ""
	if len(rows) > 0 {
		text = strings.Join(above, "\n") + "\n" + p.lines(rows) + "\n"
	}
	var folds []string
	for _, f := range t.folds {
		folds = append(folds, "… "+markdown(cell(f.text)), "")
	}
	return text + p.lines(folds)
}

// details returns a table that the reader of the page unfolds.
func (p *page) details(t table) string {
	open, shut := "<details><summary>"+markdown(cell(t.title))+"</summary>\n\n", "</details>\n\n"
	if !p.take(len(open) + len(shut)) {
		p.miss(len(t.rows) + len(t.folds))
		return ""
	}
	return open + p.table(t) + shut
}

// headMarkdown returns the notices, the first one in bold.
func headMarkdown(v reportView) []string {
	var lines []string
	for i, n := range v.head {
		text := markdown(cell(n.text))
		switch {
		case n.label != "":
			text = "> **" + n.label + "** " + text
		case i == 0:
			text = "**" + text + "**"
		}
		lines = append(lines, text, "")
	}
	return lines
}

// paragraphs returns texts as paragraphs. A command is code, in which a shell's $( stays.
func paragraphs(label string, texts []string) []string {
	var lines []string
	for _, text := range texts {
		text = cell(text)
		if command, ok := strings.CutPrefix(text, undoLabel); ok {
			text = undoLabel + asCode(command)
		} else {
			text = markdown(text)
		}
		lines = append(lines, label+text, "")
	}
	return lines
}

// asCode returns a printable line as code.
func asCode(text string) string { return "`" + inCode.Replace(text) + "`" }

// markdown returns a printable line without markup. A text with a link, a mention or a
// reference becomes code, because no escape keeps GitHub from making those.
func markdown(text string) string {
	if links.MatchString(text) {
		return asCode(text)
	}
	return inText.Replace(text)
}

var (
	links = regexp.MustCompile(`(?i)[@#]|://|www\.`)

	// inText escapes the characters that could become markup, and inCode those that could
	// end the code or the cell.
	inText = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`, "$", `\$`,
		"[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "&", `\&`)
	inCode = strings.NewReplacer("`", `\x60`, "|", `\x7c`, "<", `\x3c`)
)
