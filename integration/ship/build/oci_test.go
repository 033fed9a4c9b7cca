package build_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
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

// checkImage looks whether the image of a release has the program and the notices of the
// archive, and the configuration of the Dockerfile. It returns the digest of the index.
func checkImage(t *testing.T, archive string, program, notices, commit string) string {
	t.Helper()
	l := readLayout(t, archive)
	var top, index struct{ Manifests []descriptor }
	parse(t, l["index.json"], &top)
	if len(top.Manifests) != 1 {
		t.Fatalf("the layout has %d images, want one for all platforms", len(top.Manifests))
	}
	parse(t, l.blob(t, top.Manifests[0]), &index)
	if len(index.Manifests) != 1 {
		t.Fatalf("the image is for %d platforms, want the one of the release", len(index.Manifests))
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	parse(t, l.blob(t, index.Manifests[0]), &manifest)
	var config struct{ Config imageConfig }
	parse(t, l.blob(t, manifest.Config), &config)
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
	return top.Manifests[0].Digest
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
		"## " + version + " - 20":                               notes,
		"\n    " + want + "\n":                                  notes,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}
