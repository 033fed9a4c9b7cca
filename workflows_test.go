package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A workflow is what the hosting of the repository runs. make lint has actionlint say
// whether it is valid.
type workflow struct {
	Permissions *map[string]string
	Jobs        map[string]struct {
		Permissions *map[string]string
		Needs       any
		Outputs     map[string]string
		Environment string
		Timeout     int `json:"timeout-minutes"`
		Steps       []step
	}
}

// A step of a job.
type step struct {
	ID        string
	Uses, Run string
	Env       map[string]string
	With      map[string]any
}

// writes are the rights to write that jobs have, by the file of the workflow.
var writes = map[string][]string{
	"codeql.yaml":    {"security-events"},
	"scorecard.yaml": {"id-token", "security-events"},
	"release.yaml":   {"attestations", "contents", "id-token", "packages"},
}

var (
	pinned     = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}$`)
	expression = regexp.MustCompile(`\$\{\{[^}]*\}\}`)
)

// A workflow has no right that it does not need, runs no action that another may change
// under its name, and reads no text of a stranger as a script. Its secrets are shown to make
// sign alone, in a job of an environment that runs nothing else, and may not write.
func TestWorkflowsGiveAwayNothing(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d workflows, %v", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		decode(t, file, &w, yaml.Unmarshal)
		if w.Permissions == nil || len(*w.Permissions) != 0 {
			t.Errorf("%s: permissions: %v, want {}, so that a job has none but its own", name, w.Permissions)
		}
		// These give the rights of the repository to what others wrote.
		for _, word := range []string{"pull_request_target", "workflow_run"} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s: it has %s", name, word)
			}
		}
		if name != "release.yaml" && strings.Contains(string(text), "secrets") {
			t.Errorf("%s: it has a secret", name)
		}
		for id, job := range w.Jobs {
			if job.Permissions == nil || job.Timeout == 0 {
				t.Fatalf("%s: job %s has no permissions or no timeout-minutes", name, id)
			}
			secrets, mayWrite, signs := false, false, job.Environment == "release"
			for scope, access := range *job.Permissions {
				mayWrite = mayWrite || access != "read"
				if access != "read" && (access != "write" || !slices.Contains(writes[name], scope)) {
					t.Errorf("%s: job %s has %s: %s", name, id, scope, access)
				}
			}
			for _, step := range job.Steps {
				if step.Uses != "" && !pinned.MatchString(step.Uses) {
					t.Errorf("%s: job %s uses %s, which a tag or a branch names", name, id, step.Uses)
				}
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					t.Errorf("%s: job %s leaves its token to all later steps: want persist-credentials: false", name, id)
				}
				if c := expression.FindString(step.Run); c != "" {
					t.Errorf("%s: job %s has the shell read %s: pass it by env", name, id, c)
				}
				shown := strings.Contains(fmt.Sprint(step.Env, step.With), "secrets.")
				secrets = secrets || shown
				signs = signs && (strings.HasPrefix(step.Run, "make sign ") || step.Run == "" && !shown)
			}
			if secrets && (!signs || mayWrite) {
				t.Errorf("%s: job %s gives secrets to more than make sign, has no environment, or may write", name, id)
			}
		}
	}
}

// Every job of a workflow can replace the artifacts of all others. So what the second machine made
// is told by an output of its job, and both jobs that look at the release compare that.
func TestReleaseIsComparedWithWhatNoOtherJobCanReplace(t *testing.T) {
	var w workflow
	decode(t, ".github/workflows/release.yaml", &w, yaml.Unmarshal)
	if got := w.Jobs["again"].Outputs["sums"]; got != "${{ steps.sums.outputs.sums }}" {
		t.Errorf("the output of the second machine is %q", got)
	}
	if !slices.ContainsFunc(w.Jobs["again"].Steps, func(s step) bool { return s.ID == "sums" && strings.Contains(s.Run, "$(make sums)") }) {
		t.Error("no step of the second machine says what it made")
	}
	for id, command := range map[string]string{"sign": "make sign ", "publish": "make check-release "} {
		if needs := fmt.Sprint(w.Jobs[id].Needs); !strings.Contains(needs, "again") {
			t.Errorf("job %s needs %s: without the second machine, its output is empty", id, needs)
		}
		compares := func(s step) bool {
			return strings.HasPrefix(s.Run, command) && s.Env["AGAIN_SUMS"] == "${{ needs.again.outputs.sums }}" &&
				(id == "sign" || s.Env["SIGNED"] != "")
		}
		if !slices.ContainsFunc(w.Jobs[id].Steps, compares) {
			t.Errorf("job %s does not compare the release with what the second machine said", id)
		}
	}
}
