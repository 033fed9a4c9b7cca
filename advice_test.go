package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// noGrace matches advice to release without a grace period, in words or as a setting. White space
// may be any, also that of a folded line.
var noGrace = regexp.MustCompile(`(?i)grace[-_ ]?period["'` + "`" + `]*(\s*[:=]|\s*,\s*["']|\s+(of|is|to))?\s*["'` + "`" + `]?0+(ms|s|m|h)?([^\w.]|\.(\D|$)|$)` +
	`|(without|skips?|no)\s+(the|their|its|a|any)\s+grace\s+period`)

// Promise 1. The pod of a leaked address may have been deleted by force, and then runs on for up to
// its termination grace period. So no text that is shipped advises to release an address at once:
// no page, no manifest, no alert, and nothing that the program prints.
func TestNoTextAdvisesAGracePeriodOfZero(t *testing.T) {
	for _, advice := range []string{
		"gracePeriod: 0s", "gracePeriod 0s", "with a policy that has\n        gracePeriod 0s", "--grace-period=0s", `"--grace-period", "0s"`,
		"IP_REAPER_GRACE_PERIOD=0", "a `gracePeriod` of `0s`", `"gracePeriod": "0s"`, "release suspected\naddresses without their grace period", "or skip the grace period",
	} {
		if !noGrace.MatchString(advice) {
			t.Errorf("%q is not found", advice)
		}
	}
	for _, other := range []string{"--grace-period=60s --min-age=0s", "gracePeriod: 10m", "gracePeriod: 0.5h", "the grace period is over", `flags.Duration("grace-period", 0, "use this")`} {
		if noGrace.MatchString(other) {
			t.Errorf("%q is found", other)
		}
	}
	read := 0
	for _, from := range []string{".", "docs", "deploy", "reaper", "policy", "backends"} {
		err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || from == "." && path != "."):
				return fs.SkipDir
			case entry.IsDir() || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.ToSlash(path), "docs/images/"):
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			read++
			for _, at := range noGrace.FindAllStringIndex(string(text), -1) {
				t.Errorf("%s:%d advises %q", path, 1+strings.Count(string(text[:at[0]]), "\n"), text[at[0]:at[1]])
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 200 {
		t.Errorf("%d files were read", read)
	}
}
