package build_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// locked is how the image is run: with less than the restricted Pod Security level
// leaves it.
var locked = []string{
	"run", "--rm", "--read-only", "--user", "65532", "--network", "none",
	"--cap-drop", "ALL", "--security-opt", "no-new-privileges",
}

// The image starts under the restricted Pod Security level, and has no shell.
func TestImageRunsWithoutRights(t *testing.T) {
	needImage(t)
	dir := t.TempDir()
	example := mustDocker(t, append(locked, image, "policy", "example")...)
	must(t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(example), 0o644))
	for _, path := range []string{dir, filepath.Dir(dir)} { // the user of the image reads it
		must(t, os.Chmod(path, 0o755))
	}
	for _, tt := range []struct {
		name     string
		flags    []string // of docker
		args     []string
		wantCode int
		want     string
	}{
		{"version", nil, []string{"version"}, 0, "ip-reaper " + imageVersion + " (commit " + imageCommit + ")\n"},
		{"policy validate", []string{"--volume", dir + ":/policy:ro"}, []string{"policy", "validate", "/policy/policy.yaml"}, 0, "/policy/policy.yaml is valid\n"},
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

// The image that make image builds is as that of a release, but for its digest.
func TestImageHoldsTheProgramAndItsLicencesAndNothingElse(t *testing.T) {
	needImage(t)
	var all []struct{ Config imageConfig }
	if err := json.Unmarshal([]byte(mustDocker(t, "image", "inspect", image)), &all); err != nil || len(all) != 1 {
		t.Fatalf("%d images, %v", len(all), err)
	}
	if diff := cmp.Diff(configOf(imageVersion, imageCommit), all[0].Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	checkFiles(t, layers(t, image))
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
			must(t, err)
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

// layers returns the archives of an image's layers, as docker save writes them.
func layers(t *testing.T, name string) []string {
	t.Helper()
	contents := map[string]string{}
	eachFile(t, mustDocker(t, "save", name), func(h *tar.Header, r io.Reader) {
		data, err := io.ReadAll(r)
		must(t, err)
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
		must(t, err)
		visit(h, r)
	}
}
