package main_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A workflow is what the hosting of the repository runs.
type workflow struct {
	Permissions *map[string]string
	Concurrency *struct{ Group string }
	Env         map[string]string
	Jobs        map[string]workflowJob
}

type workflowJob struct {
	Permissions *map[string]string
	Timeout     int `json:"timeout-minutes"`
	Env         map[string]string
	Steps       []struct {
		Uses, Run string
		Env       map[string]string
		With      map[string]any
	}
}

// writes are the rights to write that jobs have, by the file of the workflow.
var writes = map[string][]string{
	"codeql.yaml":    {"security-events"},
	"scorecard.yaml": {"id-token", "security-events"},
	"release.yaml":   {"attestations", "contents", "id-token", "packages"},
}

func TestWorkflowsHaveNoMoreRightsThanTheyNeed(t *testing.T) {
	for name, w := range workflows(t) {
		if w.Permissions == nil || len(*w.Permissions) != 0 {
			t.Errorf("%s: permissions: %v, want {}, so that a job has none but its own", name, w.Permissions)
		}
		if w.Concurrency == nil || w.Concurrency.Group == "" {
			t.Errorf("%s: it has no concurrency group", name)
		}
		for id, job := range w.Jobs {
			if job.Permissions == nil {
				t.Errorf("%s: job %s has no permissions", name, id)
				continue
			}
			for scope, access := range *job.Permissions {
				if access != "read" && (access != "write" || !slices.Contains(writes[name], scope)) {
					t.Errorf("%s: job %s has %s: %s", name, id, scope, access)
				}
			}
			if job.Timeout == 0 {
				t.Errorf("%s: job %s has no timeout-minutes", name, id)
			}
		}
	}
}

var (
	pinned      = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}$`)
	usesVersion = regexp.MustCompile(`(?m)^ *(?:- )?uses: \S+ # v\d+\.\d+\.\d+$`)
)

func TestWorkflowsPinTheirActions(t *testing.T) {
	for name, w := range workflows(t) {
		count := 0
		for id, job := range w.Jobs {
			for _, step := range job.Steps {
				if step.Uses == "" {
					continue
				}
				count++
				if !pinned.MatchString(step.Uses) {
					t.Errorf("%s: job %s uses %s, which a tag or a branch names", name, id, step.Uses)
				}
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					t.Errorf("%s: job %s leaves its token to all later steps: want persist-credentials: false", name, id)
				}
			}
		}
		if n := len(usesVersion.FindAllString(workflowText(t, name), -1)); n != count {
			t.Errorf("%s: %d of %d actions have their version in a comment", name, n, count)
		}
	}
}

var expression = regexp.MustCompile(`\$\{\{[^}]*\}\}`)

func TestWorkflowsKeepSecretsForTheRelease(t *testing.T) {
	for name, w := range workflows(t) {
		text := workflowText(t, name)
		for _, trigger := range []string{"pull_request_target", "workflow_run"} {
			if strings.Contains(text, trigger) {
				t.Errorf("%s: %s gives the rights of the repository to what others wrote", name, trigger)
			}
		}
		if name != "release.yaml" && strings.Contains(text, "secrets") {
			t.Errorf("%s: it has a secret", name)
		}
		for id, job := range w.Jobs {
			for _, step := range job.Steps {
				for key, value := range step.Env {
					if strings.Contains(value, "secrets.") && (!strings.HasPrefix(step.Run, "make release ") || mayWrite(job)) {
						t.Errorf("%s: job %s gives %s to more than make release, or may write", name, id, key)
					}
				}
				if c := expression.FindString(step.Run); c != "" {
					t.Errorf("%s: job %s has the shell read %s: pass it by env", name, id, c)
				}
			}
		}
	}
}

// mayWrite reports whether a job may write anything to the repository.
func mayWrite(job workflowJob) bool {
	return job.Permissions == nil || slices.Contains(slices.Collect(maps.Values(*job.Permissions)), "write")
}

// Workflows do what anybody can do with the same words.
func TestWorkflowsCallMake(t *testing.T) {
	files, err := filepath.Glob("integration/*/*.mk")
	if err != nil {
		t.Fatal(err)
	}
	targets := ""
	for _, file := range append(files, "Makefile") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		targets += string(text)
	}
	for name, w := range workflows(t) {
		called := name == "scorecard.yaml" // it may have no step that runs anything
		for id, job := range w.Jobs {
			for _, step := range job.Steps {
				words := strings.Fields(step.Run)
				if len(words) == 0 || words[0] != "make" {
					if step.Run != "" && name != "release.yaml" {
						t.Errorf("%s: job %s runs %q, and no target of make", name, id, step.Run)
					}
					continue
				}
				called = true
				if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(words[1]) + `:.* ## `).MatchString(targets) {
					t.Errorf("%s: job %s makes %s, which is no target", name, id, words[1])
				}
			}
		}
		if !called {
			t.Errorf("%s: it calls no target of make", name)
		}
	}
}

// workflows returns all workflows by the names of their files.
func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	files, err := filepath.Glob(".github/workflows/*.y*ml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d workflows, %v", len(files), err)
	}
	all := map[string]workflow{}
	for _, file := range files {
		var w workflow
		decode(t, file, &w, yaml.Unmarshal)
		if len(w.Jobs) == 0 {
			t.Errorf("%s has no job", file)
		}
		all[filepath.Base(file)] = w
	}
	return all
}

func workflowText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(".github/workflows", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
