package main_test

import (
	"fmt"
	"iter"
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
	On          any `json:"true"` // what the key on is to a reader of YAML 1.1
	Permissions *map[string]string
	Jobs        map[string]struct {
		Permissions *map[string]string
		If          string
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

// steps yields each step of each workflow, with the names of its file and its job.
func steps(t *testing.T) iter.Seq2[string, step] {
	return func(yield func(string, step) bool) {
		for _, file := range matches(t, ".github/workflows/*") {
			var w workflow
			decode(t, file, &w, yaml.Unmarshal)
			for id, job := range w.Jobs {
				for _, s := range job.Steps {
					if !yield(file+": job "+id, s) {
						return
					}
				}
			}
		}
	}
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
	for _, file := range matches(t, ".github/workflows/*") {
		name, text := filepath.Base(file), read(t, file)
		var w workflow
		decode(t, file, &w, yaml.Unmarshal)
		if w.Permissions == nil || len(*w.Permissions) != 0 {
			t.Errorf("%s: permissions: %v, want {}, so that a job has none but its own", name, w.Permissions)
		}
		// These give the rights of the repository to what others wrote.
		for _, word := range []string{"pull_request_target", "workflow_run"} {
			if strings.Contains(text, word) {
				t.Errorf("%s: it has %s", name, word)
			}
		}
		if name != "release.yaml" && strings.Contains(text, "secrets") {
			t.Errorf("%s: it has a secret", name)
		}
		if len(w.Jobs) == 0 {
			t.Errorf("%s: it has no job", name)
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
			if name == "release.yaml" && mayWrite && job.Environment != "release" {
				t.Errorf("%s: job %s may write, and nobody has to approve it", name, id)
			}
			if secrets && (!signs || mayWrite) {
				t.Errorf("%s: job %s gives secrets to more than make sign, has no environment, or may write", name, id)
			}
		}
	}
}

// A tag or a branch brings a workflow of its own. So a release is started by hand, on main alone, and
// makes its tag before it publishes anything: another release, or another commit, may have it already.
func TestReleaseIsStartedOnMainAndMakesItsTag(t *testing.T) {
	var w workflow
	decode(t, ".github/workflows/release.yaml", &w, yaml.Unmarshal)
	if on, _ := w.On.(map[string]any); len(on) != 1 || on["workflow_dispatch"] == nil {
		t.Errorf("it is started by %v, want workflow_dispatch with a version", w.On)
	}
	if got := w.Jobs["version"].If; got != "github.ref == 'refs/heads/main'" {
		t.Errorf("the first job is run if %q", got)
	}
	for id := range w.Jobs {
		for next := id; next != "version"; {
			needs := fmt.Sprint(w.Jobs[next].Needs)
			if next, _, _ = strings.Cut(strings.Trim(needs, "[]"), " "); w.Jobs[next].Timeout == 0 {
				t.Fatalf("job %s does not wait for the job version: it needs %s", id, needs)
			}
		}
	}
	runs := func(command string) int {
		return slices.IndexFunc(w.Jobs["publish"].Steps, func(s step) bool { return strings.Contains(s.Run, command) })
	}
	order := []int{runs("make check-release"), runs(`git push origin "HEAD:refs/tags/$VERSION"`), runs("make publish-image"), runs("gh release create")}
	if order[0] < 0 || !slices.IsSorted(order) {
		t.Errorf("check, tag, image and release are the steps %v", order)
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
