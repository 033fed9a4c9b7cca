package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// The types of https://helm.sh/community/hips/hip-0017.
const (
	configType  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	contentType types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// writeChart writes a packed chart as an OCI layout. The folder must not be there yet. It then has what
// helm push would push, except for the time, so the same archive gives the same digest.
func writeChart(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: image chart ARCHIVE FOLDER")
	}
	content, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	about, err := chartYAML(content)
	if err != nil {
		return err
	}
	config, err := yaml.YAMLToJSON(about)
	if err != nil {
		return err
	}
	if err := os.Mkdir(args[1], 0o755); err != nil {
		return err
	}
	path, err := layout.Write(args[1], empty.Index)
	if err != nil {
		return err
	}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Layers: make([]v1.Descriptor, 1)}
	if manifest.Config, err = addBlob(path, configType, config); err != nil {
		return err
	}
	if manifest.Layers[0], err = addBlob(path, contentType, content); err != nil {
		return err
	}
	if manifest.Annotations, err = chartAnnotations(about); err != nil {
		return err
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	descriptor, err := addBlob(path, manifest.MediaType, text)
	if err != nil {
		return err
	}
	return path.AppendDescriptor(descriptor)
}

// chartYAML returns what the chart says of itself.
func chartYAML(content []byte) ([]byte, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	for files := tar.NewReader(zipped); ; {
		header, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("no Chart.yaml: %w", err)
		}
		if header.Name == "ip-reaper/Chart.yaml" {
			return io.ReadAll(files)
		}
	}
}

// chartAnnotations are those by which registries show what it is, and which repository it is of.
func chartAnnotations(about []byte) (map[string]string, error) {
	var chart struct {
		Name, Version, Description, Home string
	}
	if err := yaml.Unmarshal(about, &chart); err != nil {
		return nil, err
	}
	return map[string]string{
		"org.opencontainers.image.title":       chart.Name,
		"org.opencontainers.image.version":     chart.Version,
		"org.opencontainers.image.description": chart.Description,
		"org.opencontainers.image.source":      chart.Home,
	}, nil
}

// addBlob writes a blob, and returns what names it.
func addBlob(path layout.Path, kind types.MediaType, text []byte) (v1.Descriptor, error) {
	digest, size, err := v1.SHA256(bytes.NewReader(text))
	if err != nil {
		return v1.Descriptor{}, err
	}
	return v1.Descriptor{MediaType: kind, Digest: digest, Size: size}, path.WriteBlob(digest, io.NopCloser(bytes.NewReader(text)))
}
