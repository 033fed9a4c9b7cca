package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every step of a workflow is one that .ci/run or a test runs before a change lands, or is one of those that
// docs/release.md lists as not run.
func TestStepsOfWorkflowsAreRunBeforeAChangeLands(t *testing.T) {
	run := stepsRun(t)
	unrun := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(section(t, "docs/release.md", "| step |"), -1)
	if len(unrun) == 0 {
		t.Fatal("docs/release.md lists no step that is not run")
	}
	listed := make(map[string]bool)
	for at, step := range steps(t) {
		i := slices.IndexFunc(unrun, func(command []string) bool { return strings.HasPrefix(step.Run, command[1]) })
		if i >= 0 {
			listed[unrun[i][1]] = true
		}
		if step.Run == "" || i >= 0 {
			continue
		}
		for _, part := range parts.FindAllStringSubmatch(step.Run, -1) {
			if !run[part[1]+part[2]] {
				t.Errorf("%s: nothing runs %q before a change lands, and docs/release.md does not list it", at, step.Run)
			}
		}
		if !parts.MatchString(step.Run) {
			t.Errorf("%s: %q is no target of make and no script, and docs/release.md does not list it", at, step.Run)
		}
	}
	for _, command := range unrun {
		if !listed[command[1]] {
			t.Errorf("docs/release.md lists %q, which no workflow runs", command[1])
		}
	}
}

// parts matches the targets of make and the scripts in a command.
var parts = regexp.MustCompile(`(?:make|\$\(MAKE\)(?: --[a-z-]+)*) ([a-z-]+)|([a-z]+\.sh)`)

// stepsRun returns the targets of make and the scripts that .ci/run or a test of what is shipped runs, and those
// that are run by these.
func stepsRun(t *testing.T) map[string]bool {
	t.Helper()
	run := make(map[string]bool)
	for _, target := range regexp.MustCompile(`(?m)^[^#\n]*(?:\bstage|m" make) ([a-z-]+)`).FindAllStringSubmatch(read(t, ".ci/run"), -1) {
		run[target[1]] = true
	}
	for _, file := range matches(t, "integration/ship/build/*_test.go") {
		text := read(t, file)
		for _, call := range regexp.MustCompile(`"make"((?:, "[a-z-]+")+)`).FindAllStringSubmatch(text, -1) {
			for _, target := range regexp.MustCompile(`[a-z-]+`).FindAllString(call[1], -1) {
				run[target] = true
			}
		}
		for _, script := range regexp.MustCompile(`"([a-z]+\.sh)"`).FindAllStringSubmatch(text, -1) {
			run[script[1]] = true
		}
	}
	recipes := regexp.MustCompile(`(?m)^([a-z -]+):.*\n((?:\t.*\n)+)`).FindAllStringSubmatch(read(t, "Makefile"), -1)
	for _, recipe := range recipes {
		for _, part := range parts.FindAllStringSubmatch(recipe[2], -1) {
			inner := part[1] + part[2]
			for _, target := range strings.Fields(recipe[1]) {
				run[inner] = run[inner] || run[target]
				run[target] = run[target] || part[2] != "" && run[inner] // make sums is no more than sums.sh
			}
		}
	}
	for _, part := range parts.FindAllStringSubmatch(read(t, "integration/tools/release/release.sh"), -1) {
		run[part[2]] = run[part[2]] || run["release.sh"]
	}
	return run
}

// section returns the paragraph of a page that begins with some text.
func section(t *testing.T, file, begin string) string {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, file), "\n"+begin)
	text, _, _ := strings.Cut(rest, "\n\n")
	return text
}

// read returns the text of a file.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// matches returns the files that match a pattern, at least one.
func matches(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s matches nothing: %v", pattern, err)
	}
	return files
}
