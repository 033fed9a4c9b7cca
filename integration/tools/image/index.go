package main

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"os"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A release is what the images of all platforms have in common.
type release struct {
	name    string // repository and tag
	version string
	commit  string
	created time.Time
	license string // a file
	notices string // a file
}

// labels are those of the Dockerfile. integration/ship/build compares the two.
func (r release) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "ip-reaper",
		"org.opencontainers.image.description": "Gives back the pod addresses that nobody uses any more",
		"org.opencontainers.image.source":      "https://github.com/ip-reaper/ip-reaper",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.commit,
	}
}

// annotations are what index and manifests say of themselves: the labels, and the time.
func (r release) annotations() map[string]string {
	all := r.labels()
	all["org.opencontainers.image.created"] = r.created.Format(time.RFC3339)
	return all
}

// index returns the index of the images of the programs, in the order of their platforms.
func (r release) index(programs []string) (v1.ImageIndex, error) {
	var adds []mutate.IndexAddendum
	for _, program := range programs {
		platform, err := platformOf(program)
		if err != nil {
			return nil, err
		}
		image, err := r.image(program, platform)
		if err != nil {
			return nil, err
		}
		adds = append(adds, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	byPlatform := func(a, b mutate.IndexAddendum) int { return cmp.Compare(a.Platform.String(), b.Platform.String()) }
	slices.SortFunc(adds, byPlatform)
	for i := 1; i < len(adds); i++ {
		if byPlatform(adds[i-1], adds[i]) == 0 {
			return nil, fmt.Errorf("two programs are for %s", adds[i].Platform)
		}
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), adds...)
	return mutate.Annotations(index, r.annotations()).(v1.ImageIndex), nil
}

// platformOf returns what a program was built for, as Go noted it in the program.
func platformOf(program string) (v1.Platform, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return v1.Platform{}, fmt.Errorf("%s is no program of Go: %w", program, err)
	}
	var platform v1.Platform
	for _, setting := range info.Settings {
		switch setting.Key {
		case "GOOS":
			platform.OS = setting.Value
		case "GOARCH":
			platform.Architecture = setting.Value
		}
	}
	if platform.OS != "linux" || platform.Architecture == "" {
		return v1.Platform{}, fmt.Errorf("%s is for %s: an image needs one for Linux", program, platform)
	}
	return platform, nil
}

// image returns the image of a program, with the configuration of the Dockerfile.
func (r release) image(program string, platform v1.Platform) (v1.Image, error) {
	layer, err := r.layer(program)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{
		Layer:     layer,
		MediaType: types.OCILayer,
		History:   v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "ip-reaper " + r.version},
	})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = platform.OS, platform.Architecture
	config.Created = v1.Time{Time: r.created}
	config.Config = v1.Config{User: "65532:65532", Entrypoint: []string{"/ip-reaper"}, Labels: r.labels()}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(image, r.annotations()).(v1.Image), nil
}

// write writes a layout of the index to a folder that is not there yet. The first name is
// for containerd, the second for tools that know only tags.
func (r release) write(index v1.ImageIndex, folder string) error {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          r.name,
		"org.opencontainers.image.ref.name": r.version,
	}))
}
