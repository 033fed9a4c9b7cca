package ship_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// objects are what was rendered, by kind and name.
type objects map[string]runtime.Object

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
func of(components ...string) overlay {
	return overlay{Resources: []string{"cronjob"}, Components: components}
}

// render has kubectl render a folder.
func render(t *testing.T, folder string) objects {
	t.Helper()
	found := make(objects)
	for _, object := range decode(t, build(t, folder)) {
		typed, err := scheme.Scheme.New(object.GroupVersionKind())
		must(t, err)
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true))
		name := object.GetKind() + " " + object.GetName()
		if _, twice := found[name]; twice {
			t.Errorf("a second %s", name)
		}
		found[name] = typed
	}
	return found
}
