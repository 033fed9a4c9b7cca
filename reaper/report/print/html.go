package print

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// assets are the parts of the page. No text of a report gets into them: the report is a
// separate block of JSON, and the script makes text nodes of its values. So the page
// needs no templates, which would keep the linker from dropping unused methods.
//
//go:embed html
var assets embed.FS

// scripts and styles are joined in this order.
var (
	scripts = []string{"data.js", "cells.js", "map.js", "pools.js", "table.js", "page.js"}
	styles  = []string{"page.css", "parts.css"}
)

// ipOnPage is what the script of the page replaces with an address.
const ipOnPage = "ADDRESS"

// pageData is what the script of the page reads.
type pageData struct {
	BottomLine string         `json:"bottomLine"`
	Conclusion string         `json:"conclusion"`
	Next       []judge.Remedy `json:"next"`    // what to do next, and the commands to type
	Explain    string         `json:"explain"` // a command that explains the address in place of ipOnPage
	States     string         `json:"states"`  // one letter for each entry of the report
	Report     any            `json:"report"`  // as printJSON prints it

	// Same has the allocations that another one of their address decides on, by their indices, and Top
	// says who leaks most.
	Same map[int]int `json:"same"`
	Top  []ranking   `json:"top"`
}

// printHTML prints a page that needs no other file and no network.
func printHTML(w io.Writer, v view) error {
	data := pageData{BottomLine: v.head[0].text, Conclusion: strings.Join(v.conclusion[:min(1, len(v.conclusion))], ""), Next: v.next, Explain: v.explain, States: v.states(), Report: v.value}
	if r, ok := v.value.(report.Report); ok {
		data.Top, data.Same = []ranking{rank(r, "nodes"), rank(r, "namespaces")}, make(map[int]int)
		for _, first := range rowsOf(r.Entries, false) {
			for _, other := range first.others {
				data.Same[other.at] = first.at
			}
		}
	}
	style, script := join(styles), join(scripts)
	head := strings.NewReplacer("STYLE-HASH", hashOf(style), "SCRIPT-HASH", hashOf(script)).Replace(join([]string{"head.html"}))
	if _, err := fmt.Fprintf(w, "%s<style>%s</style>\n%s<script type=\"application/json\" id=\"data\">\n",
		head, style, join([]string{"body.html"})); err != nil {
		return err
	}
	// The encoder escapes <, >, & and line separators, so no text ends the block.
	if err := json.NewEncoder(printable.JSON(w)).Encode(data); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "</script>\n<script type=\"module\">%s</script>\n</body>\n</html>\n", script)
	return err
}

// join returns the assets one after another.
func join(names []string) string {
	var all bytes.Buffer
	for _, name := range names {
		text, err := assets.ReadFile("html/" + name)
		if err != nil {
			panic(err) // the name is not that of an embedded file
		}
		all.Write(text)
	}
	return all.String()
}

// hashOf returns the source expression of a Content-Security-Policy for an inline text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// statesOf returns one letter for each entry.
func statesOf[E any](entries []E, fate func(*E) report.Fate) string {
	letters := make([]byte, len(entries))
	for i := range entries {
		letters[i] = looks[fate(&entries[i])].letter
	}
	return string(letters)
}

// fateOnPage returns the fate of an entry as the page draws it. What leaked are the allocations that
// report.Leaked counts by address, so it is another one if another allocation keeps the address.
func fateOnPage(e *report.Entry) report.Fate {
	fate := e.Fate()
	if status := fate.Status(); e.Address != nil && !e.Address.Fate.Leaked() && (status == report.Due || status == report.Waiting || status == report.Held) && fate != report.Failed {
		return report.Other
	}
	return fate
}
