package deploy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// modes are the components with rights. An installation has one of them.
var modes = []string{"plan", "release", "restore"}

// installation reads the objects of an installation of a mode, by kind and name.
func installation(t *testing.T, mode string) map[string]metav1.Object {
	t.Helper()
	rights := "../helm/ip-reaper/rights/" + mode
	if mode == "restore" {
		rights = "components/restore"
	}
	return folders(t, "namespace", "base", "template", rights)
}

// folders reads the objects that folders of kustomize/ contain, by kind and name.
func folders(t *testing.T, names ...string) map[string]metav1.Object {
	t.Helper()
	objects := make(map[string]metav1.Object)
	for _, name := range names {
		for _, file := range manifests(t, name) {
			for _, object := range read(t, file) {
				objects[kind(object)+" "+object.GetName()] = object
			}
		}
	}
	return objects
}

// manifests returns the files of a folder of kustomize/ that contain objects of the API. It
// omits kustomizations and policies.
func manifests(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("kustomize", dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(file string) bool {
		base := filepath.Base(file)
		return base == "kustomization.yaml" || base == "policy.yaml"
	})
}

// read decodes the objects of a file, which have known fields only.
func read(t *testing.T, file string) []metav1.Object {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []metav1.Object
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		object, _, err := decoder.Decode(doc, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, object.(metav1.Object))
	}
}

// kind returns the type of an object: *v1.ClusterRole is a ClusterRole.
func kind(object any) string {
	_, after, _ := strings.Cut(fmt.Sprintf("%T", object), ".")
	return after
}

// find returns the object of a type and name.
func find[T metav1.Object](t *testing.T, objects map[string]metav1.Object, name string) T {
	t.Helper()
	var none T
	key := kind(none) + " " + name
	object, ok := objects[key].(T)
	if !ok {
		t.Fatalf("the installation has no %s", key)
	}
	return object
}
