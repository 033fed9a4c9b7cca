package ship_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What a page applies runs the image that it had its reader push.
func TestPagesApplyTheImageThatTheyPush(t *testing.T) {
	for _, p := range pages(t) {
		if !p.installs() {
			continue
		}
		dir, err := filepath.EvalSymlinks(t.TempDir())
		must(t, err)
		must(t, os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS(filepath.Join(root(t), "deploy"))))
		pushed, applied := "", 0
		for _, b := range p.blocks {
			if file := filepath.Join(dir, b.file()); b.file() != "" {
				must(t, os.MkdirAll(filepath.Dir(file), 0o700))
				must(t, os.WriteFile(file, []byte(b.text()), 0o600))
			}
			for _, c := range b.commands() {
				words := strings.Fields(c.typed)
				if strings.HasPrefix(c.typed, "docker push ") {
					pushed = words[2]
				}
				if !strings.HasPrefix(c.typed, "kubectl apply -k ") {
					continue
				}
				applied++
				for name, job := range everyPod(t, render(t, filepath.Join(dir, words[3]))) {
					if got := podSpec(job).Containers[0].Image; got != pushed {
						t.Errorf("%s:%d: CronJob %s has the image %s, and %s was pushed", p.path, c.line, name, got, pushed)
					}
				}
			}
		}
		if pushed == "" || applied == 0 {
			t.Errorf("%s pushes %q and applies %d folders", p.path, pushed, applied)
		}
	}
}

// The page counts what is installed.
func TestInstallPageCountsTheObjects(t *testing.T) {
	for column, overlay := range []overlay{of(), of("outage")} {
		left := map[string]int{}
		for name := range render(t, overlay.write(t)) {
			kind, _, _ := strings.Cut(name, " ")
			left[kind]++
		}
		for _, row := range rows(t, "docs/install.md", "objects") {
			count := 0
			for kind := range strings.SplitSeq(row[0], ", ") {
				count += left[kind]
				delete(left, kind)
			}
			if row[column+1] != strconv.Itoa(count) {
				t.Errorf("%v: the page says %s %s, and there are %d", overlay.Components, row[column+1], row[0], count)
			}
		}
		if len(left) > 0 {
			t.Errorf("%v: the page does not have %v", overlay.Components, left)
		}
	}
}

// argument returns the value of a --flag=value.
func argument(args []string, flag string) string {
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
	}
	return ""
}
