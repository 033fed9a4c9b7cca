package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestTheSameProgramsGiveTheSameBytes(t *testing.T) {
	amd64, arm64 := program(t, "linux/amd64"), program(t, "linux/arm64")
	first, second := makeImage(t, amd64, arm64), makeImage(t, arm64, amd64)
	if first.digest != second.digest {
		t.Errorf("the digest is %s, and %s in another folder", first.digest, second.digest)
	}
	if !bytes.Equal(read(t, first.archive), read(t, second.archive)) {
		t.Error("the archive is another in another folder")
	}
	packed := map[string]string{}
	eachFile(t, bytes.NewReader(read(t, first.archive)), func(h *tar.Header, text []byte) {
		if h.Uid != 0 || h.Gid != 0 || fmt.Sprint(h.ModTime.Unix()) != committed {
			t.Errorf("%s is of user %d and of %v", h.Name, h.Uid, h.ModTime)
		}
		if h.Typeflag == tar.TypeReg {
			packed[h.Name] = string(text)
		}
	})
	written := map[string]string{}
	if err := filepath.WalkDir(second.folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			written[strings.TrimPrefix(path, second.folder+"/")] = string(read(t, path))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written, packed); diff != "" {
		t.Errorf("files (-folder +archive):\n%s", diff)
	}
}

func TestEachPlatformHasItsProgram(t *testing.T) {
	platforms := []string{"linux/amd64", "linux/arm64"}
	m := makeImage(t, program(t, platforms[0]), program(t, platforms[1]))
	index := m.index(t)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{
		"org.opencontainers.image.title":       "ip-reaper",
		"org.opencontainers.image.description": "Gives back the pod addresses that nobody uses any more",
		"org.opencontainers.image.source":      "https://github.com/ip-reaper/ip-reaper",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     "v1.2.3",
		"org.opencontainers.image.revision":    "0123abc",
	}
	annotations := map[string]string{"org.opencontainers.image.created": "2026-03-01T12:00:00Z"}
	for key, value := range labels {
		annotations[key] = value
	}
	if diff := cmp.Diff(annotations, manifest.Annotations); diff != "" {
		t.Errorf("annotations of the index (-want +got):\n%s", diff)
	}
	var got []string
	for _, d := range manifest.Manifests {
		got = append(got, d.Platform.String())
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(image); err != nil {
			t.Errorf("%s: %v", d.Platform, err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Platform().String() != d.Platform.String() || config.Created.Format("2006-01-02T15:04:05Z") != "2026-03-01T12:00:00Z" {
			t.Errorf("the image for %s is one for %s of %v", d.Platform, config.Platform(), config.Created)
		}
		want := v1.Config{User: "65532:65532", Entrypoint: []string{"/ip-reaper"}, Labels: labels}
		if diff := cmp.Diff(want, config.Config); diff != "" {
			t.Errorf("%s: configuration (-want +got):\n%s", d.Platform, diff)
		}
		m, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(annotations, m.Annotations); diff != "" {
			t.Errorf("%s: annotations (-want +got):\n%s", d.Platform, diff)
		}
		if m.MediaType != types.OCIManifestSchema1 || m.Config.MediaType != types.OCIConfigJSON || m.Layers[0].MediaType != types.OCILayer {
			t.Errorf("%s: the media types are not those of OCI: %v", d.Platform, m)
		}
		checkFiles(t, image, program(t, d.Platform.String()))
	}
	if diff := cmp.Diff(platforms, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

// checkFiles looks whether an image has a program, its licences, and nothing else.
func checkFiles(t *testing.T, image v1.Image, program string) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v, want one", len(layers), err)
	}
	layer, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer layer.Close()
	type file struct {
		Name     string
		Mode     int64
		UID, GID int
		Time     int64
		Text     string
	}
	var got []file
	eachFile(t, layer, func(h *tar.Header, text []byte) {
		got = append(got, file{h.Name, h.Mode, h.Uid, h.Gid, h.ModTime.Unix(), string(text)})
	})
	if diff := cmp.Diff([]file{
		{Name: "ip-reaper", Mode: 0o755, Text: string(read(t, program))},
		{Name: "licenses/", Mode: 0o755},
		{Name: "licenses/LICENSE", Mode: 0o644, Text: "the licence\n"},
		{Name: "licenses/THIRD_PARTY_NOTICES", Mode: 0o644, Text: "the notices\n"},
	}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestWhatIsMissingOrWrongIsRefused(t *testing.T) {
	amd64 := program(t, "linux/amd64")
	for _, tt := range []struct {
		name     string
		change   func(t *testing.T, dir string)
		programs []string
		want     string
	}{
		{"no notices", func(t *testing.T, dir string) { remove(t, dir, "THIRD_PARTY_NOTICES") }, []string{amd64}, "THIRD_PARTY_NOTICES: no such file"},
		{"no licence", func(t *testing.T, dir string) { remove(t, dir, "LICENSE") }, []string{amd64}, "LICENSE: no such file"},
		{"empty notices", func(t *testing.T, dir string) { write(t, dir, "THIRD_PARTY_NOTICES", "\n") }, []string{amd64}, "THIRD_PARTY_NOTICES is empty: an image needs licenses/THIRD_PARTY_NOTICES"},
		{"a folder that is there", func(t *testing.T, dir string) { write(t, dir, "layout/index.json", "{}") }, []string{amd64}, "layout: file exists"},
		{"no program", nil, nil, "no program is given"},
		{"a script", nil, []string{"publish.sh"}, "publish.sh is no program of Go"},
		{"another system", nil, []string{program(t, "darwin/arm64")}, "is for darwin/arm64: an image needs one for Linux"},
		{"a platform twice", nil, []string{amd64, amd64}, "two programs are for linux/amd64"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := files(t)
			if tt.change != nil {
				tt.change(t, dir)
			}
			err := run(arguments(dir, tt.programs...), io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "image.tar")); err == nil {
				t.Error("an archive is written")
			}
		})
	}
	args := slices.DeleteFunc(arguments(files(t), amd64), func(arg string) bool { return strings.HasPrefix(arg, "-commit=") })
	if err := run(args, io.Discard); err == nil || err.Error() != "-commit is not given: it is the commit of the program" {
		t.Errorf("error %v without a commit", err)
	}
}
