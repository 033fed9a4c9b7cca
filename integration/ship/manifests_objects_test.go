package ship_test

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ip-reaper/ip-reaper/integration/ship/kustomize"
)

// objects are what was rendered, by kind and name.
type objects map[string]runtime.Object

func (o objects) add(t *testing.T, object runtime.Object) {
	t.Helper()
	name := key(t, object)
	if _, twice := o[name]; twice {
		t.Errorf("a second %s", name)
	}
	o[name] = object
}

// key is the kind and the name of an object.
func key(t *testing.T, object runtime.Object) string {
	t.Helper()
	accessor, err := meta.Accessor(object)
	must(t, err)
	return object.GetObjectKind().GroupVersionKind().Kind + " " + accessor.GetName()
}

// every returns the objects of a type, by name.
func every[T runtime.Object](t *testing.T, all objects) map[string]T {
	t.Helper()
	found := make(map[string]T)
	for _, object := range all {
		if one, ok := object.(T); ok {
			accessor, err := meta.Accessor(object)
			must(t, err)
			found[accessor.GetName()] = one
		}
	}
	return found
}

// podSpec is the spec of the pods that a CronJob leads to.
func podSpec(c *batchv1.CronJob) corev1.PodSpec { return c.Spec.JobTemplate.Spec.Template.Spec }

// of is the CronJob with components.
func of(components ...string) kustomize.Overlay {
	return kustomize.Overlay{Resources: []string{"cronjob"}, Components: components}
}

// render has kubectl render a folder.
func render(t *testing.T, folder string) objects {
	t.Helper()
	found := make(objects)
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(kustomize.Build(t, folder)))); ; {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found
		}
		must(t, err)
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		found.add(t, object)
	}
}
