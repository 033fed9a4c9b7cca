package build_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// repository is where the images of releases are.
const repository = "ghcr.io/ip-reaper/ip-reaper"

// A layout is what the archive of an image has, by the names of the files.
type layout map[string]string

// A descriptor names a blob of a layout.
type descriptor struct{ Digest string }

func readLayout(t *testing.T, archive string) layout {
	t.Helper()
	l := layout{}
	eachFile(t, archive, func(h *tar.Header, r io.Reader) {
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		l[h.Name] = string(text)
	})
	return l
}

// blob returns a blob, which has to be what its name says.
func (l layout) blob(t *testing.T, d descriptor) string {
	t.Helper()
	text := l["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))); got != d.Digest {
		t.Fatalf("the blob %s has the digest %s", d.Digest, got)
	}
	return text
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}

// checkImage looks whether the image of a release has the program and the notices of the
// archive, and the configuration of the Dockerfile. It returns the digest of the index.
func checkImage(t *testing.T, archive string, program, notices, commit string) string {
	t.Helper()
	l := readLayout(t, archive)
	var top, index struct{ Manifests []descriptor }
	decode(t, l["index.json"], &top)
	if len(top.Manifests) != 1 {
		t.Fatalf("the layout has %d images, want one for all platforms", len(top.Manifests))
	}
	decode(t, l.blob(t, top.Manifests[0]), &index)
	if len(index.Manifests) != 1 {
		t.Fatalf("the image is for %d platforms, want the one of the release", len(index.Manifests))
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(t, l.blob(t, index.Manifests[0]), &manifest)
	var config struct{ Config imageConfig }
	decode(t, l.blob(t, manifest.Config), &config)
	if diff := cmp.Diff(configOf(version, commit), config.Config); diff != "" {
		t.Errorf("the configuration is not that of the Dockerfile (-want +got):\n%s", diff)
	}
	var layers []string
	for _, d := range manifest.Layers {
		zipped, err := gzip.NewReader(strings.NewReader(l.blob(t, d)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(zipped)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, string(text))
	}
	texts := checkFiles(t, layers)
	if texts["ip-reaper"] != program || texts["licenses/THIRD_PARTY_NOTICES"] != notices {
		t.Error("the image has another program, or other notices, than the archive")
	}
	t.Run("Docker runs the image", func(t *testing.T) {
		needImage(t)
		name := fmt.Sprintf("ip-reaper:test-release-%d", os.Getpid())
		defer docker(t, "image", "rm", "--force", name)
		l.load(t, name, manifest.Config, manifest.Layers)
		if diff := cmp.Diff(configOf(version, commit), inspect(t, name).Config); diff != "" {
			t.Errorf("configuration (-want +got):\n%s", diff)
		}
		want := "ip-reaper " + version + " (commit " + commit + ")\n"
		if got := must(t, append(locked, name, "version")...); got != want {
			t.Errorf("the program says %q, want %q", got, want)
		}
	})
	return top.Manifests[0].Digest
}

// load loads an image into Docker, in the form that also old versions of Docker read.
func (l layout) load(t *testing.T, name string, config descriptor, layers []descriptor) {
	t.Helper()
	path := func(d descriptor) string { return "blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:") }
	var paths []string
	for _, d := range layers {
		paths = append(paths, path(d))
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": path(config), "RepoTags": []string{name}, "Layers": paths}})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	files := map[string]string{"manifest.json": string(manifest), path(config): l[path(config)]}
	for _, path := range paths {
		files[path] = l[path]
	}
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "docker", "load", "--quiet")
	cmd.Stdin = &archive
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("docker load: %v\n%s", err, out)
	}
}

// checkManifests looks whether manifests, chart and notes name the image of the release by
// its digest, and nothing else does by its tag alone.
func checkManifests(t *testing.T, files map[string]string, digest string) {
	t.Helper()
	want := repository + ":" + version + "@" + digest
	named := regexp.MustCompile(`(?m)^ *(?:- )?image: (` + regexp.QuoteMeta(repository) + `.*)$`)
	var count int
	for path, text := range unpack(t, files["ip-reaper_"+version+"_deploy.tar.gz"]) {
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			count++
			if match[1] != want {
				t.Errorf("%s names the image %s, want %s", path, match[1], want)
			}
		}
	}
	if count < 3 {
		t.Errorf("%d manifests name the image, want those of the CronJob, the DaemonSet and the Job of a node", count)
	}
	chart := unpack(t, files["ip-reaper-"+strings.TrimPrefix(version, "v")+".tgz"])["ip-reaper/Chart.yaml"]
	notes := files["ip-reaper_"+version+"_notes.md"]
	for want, text := range map[string]string{
		"\nappVersion: " + version + "\n":                       chart,
		"\nversion: " + strings.TrimPrefix(version, "v") + "\n": chart,
		"\n  ip-reaper/image-digest: " + digest + "\n":          chart,
		"## " + version + " - 2026-03-01\n":                     notes,
		"\n    " + want + "\n":                                  notes,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}
