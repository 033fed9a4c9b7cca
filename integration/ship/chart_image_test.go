package ship_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A chart of a release names the image of that release by its digest, in every pod. A
// digest, or a tag, of the operator takes the place of both.
func TestImageOfTheReleaseIsNamedByItsDigest(t *testing.T) {
	released, own := "sha256:"+strings.Repeat("01", 32), "sha256:"+strings.Repeat("23", 32)
	const all = "outage: {enabled: true}\nrestore: {enabled: true}\nnode: {enabled: true}\n"
	for _, tt := range []struct{ name, values, checkout, release string }{
		{"nothing is set", "", "ghcr.io/ip-reaper/ip-reaper:v1.2.3", "ghcr.io/ip-reaper/ip-reaper:v1.2.3@" + released},
		{
			"a mirror", "image: {repository: registry.example/ip-reaper}",
			"registry.example/ip-reaper:v1.2.3", "registry.example/ip-reaper:v1.2.3@" + released,
		},
		{
			"an image of one's own", "image: {repository: registry.example/ip-reaper, tag: mine}",
			"registry.example/ip-reaper:mine", "registry.example/ip-reaper:mine",
		},
		{
			"a digest", "image: {tag: mine, digest: \"" + own + "\"}",
			"ghcr.io/ip-reaper/ip-reaper@" + own, "ghcr.io/ip-reaper/ip-reaper@" + own,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for digest, want := range map[string]string{"": tt.checkout, released: tt.release} {
				c := loadChart(t)
				c.Metadata.AppVersion = "v1.2.3"
				c.Metadata.Annotations["ip-reaper/image-digest"] = digest
				files, err := theRelease.renderChart(c, values(t, all+tt.values), newest)
				must(t, err)
				var got []string
				for _, file := range []string{"cronjob.yaml", "outage.yaml", "node.yaml"} {
					images := regexp.MustCompile(`(?m)^ *image: "(.*)"$`).FindAllStringSubmatch(files[file], -1)
					if len(images) == 0 {
						t.Errorf("%s has no image", file)
					}
					for _, image := range images {
						got = append(got, image[1])
					}
				}
				if diff := cmp.Diff([]string{want}, slices.Compact(got)); diff != "" {
					t.Errorf("images, if the release has the digest %q (-want +got):\n%s", digest, diff)
				}
			}
		})
	}
}
