package build_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// maxBytes is how large the image may be, uncompressed.
const maxBytes = 45_000_000

// locked is how the image is run: with less than the restricted Pod Security level
// leaves it.
var locked = []string{
	"run", "--rm", "--read-only", "--user", "65532", "--network", "none",
	"--cap-drop", "ALL", "--security-opt", "no-new-privileges",
}

func TestImageRunsWithoutRights(t *testing.T) {
	needImage(t)
	dir := t.TempDir()
	example := must(t, append(locked, image, "policy", "example")...)
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(example), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Dir(dir)} { // the user of the image reads it
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name     string
		flags    []string // of docker
		args     []string
		wantCode int
		want     string
	}{
		{"version", nil, []string{"version"}, 0, "ip-reaper " + imageVersion + " (commit " + imageCommit + ")\n"},
		{"--version", nil, []string{"--version"}, 0, "ip-reaper version " + imageVersion + " (commit " + imageCommit + ")\n"},
		{"policy validate", []string{"--volume", dir + ":/policy:ro"}, []string{"policy", "validate", "/policy/policy.yaml"}, 0, "/policy/policy.yaml is valid\n"},
		{"a policy that is not there", nil, []string{"policy", "validate", "/policy/policy.yaml"}, 2, "no such file"},
		{"no cluster", nil, nil, 2, "name one with --kubeconfig and --context"},
		{"no shell", []string{"--entrypoint", "/bin/sh"}, []string{"-c", "true"}, 127, "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append(append(append([]string{}, locked...), tt.flags...), image)
			stdout, stderr, code := docker(t, append(args, tt.args...)...)
			if code != tt.wantCode || !strings.Contains(stdout+stderr, tt.want) {
				t.Errorf("exit code %d, want %d, and %q in:\n%s%s", code, tt.wantCode, tt.want, stdout, stderr)
			}
		})
	}
}

// An imageConfig is what an image tells the container runtime, and people.
type imageConfig struct {
	User       string
	Entrypoint []string
	Cmd        []string
	Labels     map[string]string
}

// configOf is what the images of a commit have: that of the Dockerfile, and that of a
// release, which is made without it.
func configOf(version, commit string) imageConfig {
	const oci = "org.opencontainers.image."
	return imageConfig{
		User:       "65532:65532",
		Entrypoint: []string{"/ip-reaper"},
		Labels: map[string]string{
			oci + "title":       "ip-reaper",
			oci + "description": "Gives back the pod addresses that nobody uses any more",
			oci + "source":      "https://github.com/ip-reaper/ip-reaper",
			oci + "licenses":    "Apache-2.0",
			oci + "version":     version,
			oci + "revision":    commit,
		},
	}
}

func TestImageSaysWhatItIs(t *testing.T) {
	needImage(t)
	got := inspect(t, image)
	if got.Size > maxBytes {
		t.Errorf("the image has %d bytes, at most %d are wanted", got.Size, maxBytes)
	}
	if diff := cmp.Diff(configOf(imageVersion, imageCommit), got.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

// An inspected image is what Docker says of one.
type inspected struct {
	Size   int64
	Config imageConfig
}

func inspect(t *testing.T, name string) inspected {
	t.Helper()
	var all []inspected
	if err := json.Unmarshal([]byte(must(t, "image", "inspect", name)), &all); err != nil || len(all) != 1 {
		t.Fatalf("%d images, %v", len(all), err)
	}
	return all[0]
}

func TestImageHoldsTheProgramAndItsLicencesAndNothingElse(t *testing.T) {
	needImage(t)
	texts := checkFiles(t, layers(t, image))
	for name, want := range map[string]string{
		"licenses/LICENSE":             "Apache License",
		"licenses/THIRD_PARTY_NOTICES": "\nk8s.io/client-go ",
	} {
		if !strings.Contains(texts[name], want) {
			t.Errorf("there is no %q in %s", want, name)
		}
	}
}

// checkFiles looks which files the layers of an image have, and returns them.
func checkFiles(t *testing.T, layers []string) map[string]string {
	t.Helper()
	type file struct {
		Name     string
		Mode     int64
		UID, GID int
		Time     int64
	}
	var got []file
	texts := map[string]string{}
	for _, layer := range layers {
		eachFile(t, layer, func(h *tar.Header, r io.Reader) {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			texts[h.Name] = string(text)
			got = append(got, file{h.Name, h.Mode & 0o7777, h.Uid, h.Gid, h.ModTime.Unix()})
		})
	}
	if diff := cmp.Diff([]file{
		{Name: "ip-reaper", Mode: 0o755},
		{Name: "licenses/", Mode: 0o755},
		{Name: "licenses/LICENSE", Mode: 0o644},
		{Name: "licenses/THIRD_PARTY_NOTICES", Mode: 0o644},
	}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	return texts
}

// What the image is built in is one that cannot change, with the Go of the module.
func TestBaseImagesAreNamedByTheirDigests(t *testing.T) {
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	var text [2]string
	for i, name := range []string{"Dockerfile", "go.mod"} {
		read, err := os.ReadFile(filepath.Join(filepath.Dir(root), name))
		if err != nil {
			t.Fatal(err)
		}
		text[i] = string(read)
	}
	toolchain := regexp.MustCompile(`(?m)^toolchain go(.*)$`).FindStringSubmatch(text[1])
	if toolchain == nil {
		t.Fatal("go.mod names no toolchain")
	}
	var pulled []string
	for _, from := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(text[0], -1) {
		if from[1] != "scratch" && from[1] != "base" {
			pulled = append(pulled, from[1])
		}
	}
	if len(pulled) != 1 || !regexp.MustCompile(`^golang:`+regexp.QuoteMeta(toolchain[1])+`@sha256:[0-9a-f]{64}$`).MatchString(pulled[0]) {
		t.Errorf("the Dockerfile pulls %q, want golang:%s by its digest", pulled, toolchain[1])
	}
}

func TestEveryImageOfACommitIsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a second image: make exhaustive runs it")
	}
	needImage(t)
	again := image + "-again"
	defer docker(t, "image", "rm", "--force", again)
	if out, err := makeImage(again); err != nil {
		t.Fatalf("make image: %v\n%s", err, out)
	}
	const digests = "--format={{json .RootFS.Layers}}"
	first, second := must(t, "image", "inspect", digests, image), must(t, "image", "inspect", digests, again)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("layers (-first +second):\n%s", diff)
	}
}

// layers returns the archives of an image's layers, as docker save writes them.
func layers(t *testing.T, name string) []string {
	t.Helper()
	contents := map[string]string{}
	eachFile(t, must(t, "save", name), func(h *tar.Header, r io.Reader) {
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		contents[h.Name] = string(data)
	})
	var manifest []struct{ Layers []string }
	if err := json.Unmarshal([]byte(contents["manifest.json"]), &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("manifest of %d images, %v", len(manifest), err)
	}
	var all []string
	for _, path := range manifest[0].Layers {
		all = append(all, contents[path])
	}
	return all
}

// eachFile visits the files of an archive.
func eachFile(t *testing.T, archive string, visit func(*tar.Header, io.Reader)) {
	t.Helper()
	r := tar.NewReader(strings.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(h, r)
	}
}
