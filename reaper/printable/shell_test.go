package printable_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A name with any characters is one word of a shell, and runs nothing.
func TestQuotedTextIsOneWordOfAShell(t *testing.T) {
	texts := []string{"", "plain", "~", "two words", "it's", "$(touch x)", "`id`", "a;b", "a\nb", `back\slash`, "*", "-n", "#", "!x", "a=b", "=ls", "é"}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\0' `+printable.Typed(texts...)).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if !slices.Equal(got, texts) {
		t.Errorf("a shell reads %q, want %q", got, texts)
	}
	if got := printable.Typed("--wait=2m", "=ls"); got != "--wait=2m '=ls'" { // zsh looks for a program ls
		t.Errorf("typed: %s", got)
	}
}
