package print

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// maxPage is the most bytes of a block of code for a comment. One on GitHub has at most
// 65,536 characters.
const maxPage = 60_000

// printMarkdown prints what printTable prints, as a block of code. It leaves out the lines
// before the conclusion that have no room, and says so.
func printMarkdown(w io.Writer, v view) error {
	const fence = "```"
	v.color = false
	lines, last := inCode(textLines(v, false)), inCode(conclusionLines(v))
	left := maxPage - len(cutOff(1<<40)) - len(strings.Join(last, "\n")) - 3*len(fence)
	for i, line := range lines {
		if left -= len(line) + 1; left < 0 {
			lines = append(lines[:i], cutOff(len(lines)-i))
			break
		}
	}
	return printLines(w, slices.Concat([]string{fence}, lines, last, []string{fence}))
}

// cutOff is the sentence about the lines that have no room.
func cutOff(lines int) string {
	return fmt.Sprintf("… %s left out, because a comment has at most %s bytes: -o json --all has everything", counted(lines, "line"), printable.Thousands(maxPage))
}

// inCode returns lines without the character that could end a block of code.
func inCode(lines []string) []string {
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "`", `\x60`)
	}
	return lines
}
