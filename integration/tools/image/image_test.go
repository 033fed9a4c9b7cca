package main

import (
	"archive/tar"
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// The image of a release is one for each platform, and each has the program for it.
// integration/ship/build looks at what else is in it.
func TestEachPlatformHasItsProgram(t *testing.T) {
	platforms := []string{"linux/amd64", "linux/arm64"}
	index := makeImage(t, program(t, platforms[1]), program(t, platforms[0])).index(t)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range manifest.Manifests {
		got = append(got, d.Platform.String())
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Platform().String() != d.Platform.String() {
			t.Errorf("the image for %s is one for %s", d.Platform, config.Platform())
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%d layers, %v, want one", len(layers), err)
		}
		layer, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		files := tar.NewReader(layer)
		if h, err := files.Next(); err != nil || h.Name != "ip-reaper" {
			t.Fatalf("the first file is %v, %v", h, err)
		}
		text, err := io.ReadAll(files)
		if err != nil || !bytes.Equal(text, read(t, program(t, d.Platform.String()))) {
			t.Errorf("the image for %s has another program, %v", d.Platform, err)
		}
	}
	if diff := cmp.Diff(platforms, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

// No image of another system's program, or of one without its notices, is published.
func TestWhatIsMissingOrWrongIsRefused(t *testing.T) {
	for name, program := range map[string]string{
		"a script": "publish.sh", "another system": program(t, "darwin/arm64"),
	} {
		if err := run(arguments(files(t), program), io.Discard); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
	dir := files(t)
	write(t, dir, "THIRD_PARTY_NOTICES", "\n")
	if err := run(arguments(dir, program(t, "linux/amd64")), io.Discard); err == nil {
		t.Error("empty notices are no error")
	}
}
