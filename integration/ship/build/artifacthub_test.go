package build_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// hubKinds are the kinds of change that Artifact Hub knows.
var hubKinds = []string{"added", "changed", "deprecated", "removed", "fixed", "security"}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// artifactHubReadsTheChart looks whether Artifact Hub can make sense of the annotations of
// a chart. Its own linter cannot be had as a module.
func artifactHubReadsTheChart(t *testing.T, c checkout, archive string) {
	chart, err := loader.LoadArchive(strings.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Metadata.Validate(); err != nil {
		t.Error(err)
	}
	got := map[string]string{}
	const digest = "ip-reaper/image-digest"
	for name, value := range chart.Metadata.Annotations {
		if name == digest {
			continue
		}
		short, ok := strings.CutPrefix(name, "artifacthub.io/")
		if !ok {
			t.Errorf("%s is not of Artifact Hub", name)
		}
		got[short] = value
	}
	var changes []struct{ Kind, Description string }
	var images []struct {
		Name, Image string
		Platforms   []string
	}
	var links []struct{ Name, URL string }
	var screenshots []struct{ Title, URL string }
	for name, into := range map[string]any{"changes": &changes, "images": &images, "links": &links, "screenshots": &screenshots} {
		strictly(t, got[name], into)
		delete(got, name)
	}
	if diff := cmp.Diff(map[string]string{
		"category": "networking", "license": "Apache-2.0", "prerelease": "false", "containsSecurityUpdates": "true",
	}, got); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}

	unreleased := strings.Count(c.git("ls-files", "docs/changes/unreleased/*.yaml"), "\n")
	if len(changes) != unreleased {
		t.Errorf("it tells of %d changes, and there are %d", len(changes), unreleased)
	}
	for _, change := range changes {
		if !slices.Contains(hubKinds, change.Kind) || !strings.HasSuffix(change.Description, ".") || strings.Contains(change.Description, "\n") {
			t.Errorf("%q is no kind, or this is no sentence: %q", change.Kind, change.Description)
		}
	}

	want := "ghcr.io/ip-reaper/ip-reaper:" + version
	if d := chart.Metadata.Annotations[digest]; d != "" {
		want += "@" + d
	}
	if len(images) != 1 || images[0].Image != want {
		t.Errorf("images %v, want %s", images, want)
	}
	for _, link := range links {
		path, ok := strings.CutPrefix(link.URL, "https://github.com/ip-reaper/ip-reaper/")
		if file, ok := strings.CutPrefix(path, "blob/main/"); ok {
			read(t, c.dir, file)
		}
		if !ok || link.Name == "" {
			t.Errorf("link %q leads to %q", link.Name, link.URL)
		}
	}
	for _, shot := range screenshots {
		file, ok := strings.CutPrefix(shot.URL, "https://raw.githubusercontent.com/ip-reaper/ip-reaper/main/")
		if !ok {
			t.Errorf("screenshot %q is at %q", shot.Title, shot.URL)
		}
		read(t, c.dir, file)
	}
}

func TestArtifactHubReadsTheRepository(t *testing.T) {
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		RepositoryID string
		Owners       []struct{ Name, Email string }
		Ignore       []struct{ Name, Version string }
	}
	strictly(t, read(t, root, "..", "deploy", "helm", "artifacthub-repo.yml"), &got)
	if id := got.RepositoryID; id != "" && !uuid.MatchString(id) {
		t.Errorf("repositoryID %q is none that Artifact Hub gives", id)
	}
}

// strictly reads YAML that has no field but those of its form.
func strictly(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
}

// read returns the content of a file.
func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// write writes a file.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
