package assets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// Manifests decodes the objects of a file of deploy/kustomize, in order.
func Manifests(file string) ([]runtime.Object, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "..", "deploy", "kustomize", file))
	if err != nil {
		return nil, err
	}
	var objects []runtime.Object
	for docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var doc runtime.RawExtension
		if err := docs.Decode(&doc); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc.Raw, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, object)
	}
}
