package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"
)

// prefix begins the names of Artifact Hub's annotations.
const prefix = "artifacthub.io/"

// annotate adds to the chart what Artifact Hub is told of this version: its changes and its
// image. What holds for all versions is in the chart already.
func annotate(sources, version string) error {
	chart := filepath.Join(sources, "deploy", "helm", "ip-reaper")
	changes, err := changesOf(sources, version)
	if err != nil {
		return err
	}
	images, err := imagesOf(chart, version)
	if err != nil {
		return err
	}
	added := map[string]string{}
	for key, value := range map[string]any{"changes": changes, "images": images} {
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		added[key] = string(text)
	}
	secure := slices.ContainsFunc(changes, func(c change) bool { return c.Kind == "security" })
	added["containsSecurityUpdates"] = strconv.FormatBool(secure)
	return setAnnotations(filepath.Join(chart, "Chart.yaml"), added)
}

// An image is one that the chart runs, as Artifact Hub reads it.
type image struct {
	Name      string   `json:"name"`
	Image     string   `json:"image"`
	Platforms []string `json:"platforms"`
}

// imagesOf returns the image of a chart whose values are those that it comes with.
func imagesOf(chart, version string) ([]image, error) {
	var values struct {
		Image struct{ Repository string }
	}
	if err := read(filepath.Join(chart, "values.yaml"), &values); err != nil {
		return nil, err
	}
	var about struct{ Annotations map[string]string }
	if err := read(filepath.Join(chart, "Chart.yaml"), &about); err != nil {
		return nil, err
	}
	name := values.Image.Repository + ":" + version
	if digest := about.Annotations["ip-reaper/image-digest"]; digest != "" {
		name += "@" + digest
	}
	return []image{{"ip-reaper", name, []string{"linux/amd64", "linux/arm64"}}}, nil
}

// read decodes a file of YAML.
func read(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// setAnnotations appends annotations of Artifact Hub to a Chart.yaml. Its last field has to
// be annotations, and must not have them yet.
func setAnnotations(path string, added map[string]string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(added)) {
		entry, err := yaml.Marshal(map[string]string{prefix + key: added[key]})
		if err != nil {
			return err
		}
		for line := range bytes.Lines(entry) {
			text = append(append(text, "  "...), line...)
		}
	}
	var chart struct{ Annotations map[string]string }
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for key, value := range added {
		if chart.Annotations[prefix+key] != value {
			return fmt.Errorf("%s: its last field is not annotations", path)
		}
	}
	return os.WriteFile(path, text, 0o644)
}
