package build_test

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// repository is where the images of releases are.
const repository = "ghcr.io/ip-reaper/ip-reaper"

// openIndex returns the index in the folder of a layout, which has to be whole, and the only one there.
func openIndex(t *testing.T, folder string) v1.ImageIndex {
	t.Helper()
	top, err := layout.ImageIndexFromPath(folder)
	must(t, err)
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%v: the layout has %+v, want one image for all platforms", err, manifest)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	must(t, err)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	return index
}

// unpackImage returns the index in the archive of an image.
func unpackImage(t *testing.T, c checkout, archive string) v1.ImageIndex {
	t.Helper()
	folder := t.TempDir()
	if out, err := c.run("tar", "-x", "-f", archive, "-C", folder); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return openIndex(t, folder)
}

// A platformImage is the image for one platform.
type platformImage struct {
	platform string // that both the index and the image say
	config   imageConfig
	files    map[string]string // their texts by name
}

// imagesOf returns the images of an index, in its order.
func imagesOf(t *testing.T, index v1.ImageIndex) (all []platformImage) {
	t.Helper()
	manifest, err := index.IndexManifest()
	must(t, err)
	for _, d := range manifest.Manifests {
		image, err := index.Image(d.Digest)
		must(t, err)
		config, err := image.ConfigFile()
		must(t, err)
		if config.Platform().String() != d.Platform.String() {
			t.Errorf("the image for %s is one for %s", d.Platform, config.Platform())
		}
		layers, err := image.Layers()
		must(t, err)
		var archives []string
		for _, layer := range layers {
			zipped, err := layer.Uncompressed()
			must(t, err)
			text, err := io.ReadAll(zipped)
			must(t, err)
			archives = append(archives, string(text))
		}
		all = append(all, platformImage{
			platform: d.Platform.String(), files: checkFiles(t, archives),
			config: imageConfig{config.Config.User, config.Config.Entrypoint, config.Config.Cmd, config.Config.Labels},
		})
	}
	return all
}

// checkImage looks whether the image of a release has the program and the notices of the
// archive, and the configuration of the Dockerfile. It returns the digest of the index.
func checkImage(t *testing.T, c checkout, program, notices, commit string) string {
	t.Helper()
	index := unpackImage(t, c, imageArchive)
	images := imagesOf(t, index)
	if len(images) != 1 {
		t.Fatalf("the image is for %d platforms, want the one of the release", len(images))
	}
	image := images[0]
	if diff := cmp.Diff(configOf(version, commit), image.config); diff != "" {
		t.Errorf("the configuration is not that of the Dockerfile (-want +got):\n%s", diff)
	}
	if image.files["ip-reaper"] != program || image.files["licenses/THIRD_PARTY_NOTICES"] != notices {
		t.Error("the image has another program, or other notices, than the archive")
	}
	digest, err := index.Digest()
	must(t, err)
	return digest.String()
}

// imageArchive is the archive of the image, in the checkout of a release.
const imageArchive = "dist/ip-reaper_" + version + "_image.tar"

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
		"## " + version + " - 20":                               notes,
		"\n    " + want + "\n":                                  notes,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}
