package build_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The image is one for each platform, in their order, and each has the program for it. None of
// another system's program is made, or of one without its notices.
func TestImageHasTheProgramOfEachPlatform(t *testing.T) {
	c := written(t, map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n",
		"LICENSE": "the licence\n", "THIRD_PARTY_NOTICES": "the notices\n", "empty": "\n",
	})
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_arm64"} {
		goos, goarch, _ := strings.Cut(platform, "_")
		if out, err := c.runWith([]string{"CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + goarch}, "go", "build", "-ldflags=-s -w", "-o", platform, "."); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	tool := built(t, "image", ".")
	makeImage := func(notices string, programs ...string) (string, error) {
		return c.run(tool, append([]string{
			"release", "-name=registry.example.com/ip-reaper:v1.2.3", "-version=v1.2.3", "-commit=0123abc", "-created=1772366400",
			"-license=LICENSE", "-notices=" + notices, "-layout=layout",
		}, programs...)...)
	}

	for _, tt := range []struct{ notices, program, want string }{
		{"THIRD_PARTY_NOTICES", "main.go", "main.go is no program of Go"},
		{"THIRD_PARTY_NOTICES", "darwin_arm64", "an image needs one for Linux"},
		{"empty", "linux_amd64", "empty is empty: an image needs licenses/THIRD_PARTY_NOTICES"},
	} {
		if out, err := makeImage(tt.notices, tt.program); err == nil || !strings.Contains(out, tt.want) {
			t.Errorf("%s with %s: %v, want %q in\n%s", tt.program, tt.notices, err, tt.want, out)
		}
	}

	if out, err := makeImage("THIRD_PARTY_NOTICES", "linux_arm64", "linux_amd64"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []string
	for _, image := range imagesOf(t, openIndex(t, c.dir+"/layout")) {
		got = append(got, image.platform)
		if name := strings.ReplaceAll(image.platform, "/", "_"); image.files["ip-reaper"] != read(t, c.dir, name) {
			t.Errorf("the image for %s has another program", image.platform)
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

// What make image pushes for several platforms has the program of each, and needs no Docker.
func TestMakeImagePushesAnIndexOfPlatforms(t *testing.T) {
	image := newRegistry(t) + "/ip-reaper:" + imageVersion
	out, err := makeImage("IMAGE="+image, "PLATFORMS=linux/amd64,linux/arm64", "DOCKER_HOST=unix:///nowhere")
	if err != nil {
		t.Fatalf("make image: %v\n%s", err, out)
	}
	c := written(t, nil)
	if out, err := c.run(built(t, "image", "github.com/google/go-containerregistry/cmd/crane"), "pull", "--format=oci", image, "layout"); err != nil {
		t.Fatalf("crane pull: %v\n%s", err, out)
	}
	var got []string
	for _, one := range imagesOf(t, openIndex(t, c.dir+"/layout")) {
		got = append(got, one.platform)
		if diff := cmp.Diff(configOf(imageVersion, imageCommit), one.config); diff != "" {
			t.Errorf("configuration for %s (-want +got):\n%s", one.platform, diff)
		}
		if program := one.files["ip-reaper"]; !strings.Contains(program, imageVersion) || !strings.Contains(program, imageCommit) {
			t.Errorf("the program for %s does not say its version and commit", one.platform)
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	if out, err := makeImage("IMAGE="+image, "PLATFORMS=darwin/arm64"); err == nil || !strings.Contains(string(out), "an image needs one for Linux") {
		t.Errorf("an image for macOS: %v\n%s", err, out)
	}
}
