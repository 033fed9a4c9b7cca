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

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// modes are the components with rights. An installation has one of them.
var modes = []string{"plan", "release"}

// installation reads the objects of an installation of a mode, by kind and name.
func installation(t *testing.T, mode string) map[string]metav1.Object {
	t.Helper()
	objects := make(map[string]metav1.Object)
	for _, dir := range []string{"namespace", "base", "template", "components/admission", "components/" + mode} {
		for _, file := range manifests(t, dir) {
			for _, object := range read(t, file) {
				key := kind(object) + " " + object.GetName()
				if _, twice := objects[key]; twice {
					t.Errorf("%s: %s is there twice", file, key)
				}
				objects[key] = object
			}
		}
	}
	return objects
}

// manifests returns the files of a directory of kustomize/ that contain objects of
// the API or patches of them. It omits kustomizations and policies.
func manifests(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("kustomize", dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(file string) bool {
		base := filepath.Base(file)
		return base == "kustomization.yaml" || slices.Contains(policies, base)
	})
}

// policies are the names of the files that contain a policy.
var policies = []string{"policy.yaml"}

// read decodes the objects of a file.
func read(t *testing.T, file string) []metav1.Object {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []metav1.Object
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		object, err := decode(doc)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, object)
	}
}

// decode decodes one object. It returns an error for a field that the object's type
// does not have.
func decode(doc []byte) (metav1.Object, error) {
	data, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, err
	}
	var meta metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &meta); err != nil {
		return nil, err
	}
	var object metav1.Object
	switch meta.APIVersion + " " + meta.Kind {
	case "v1 Namespace":
		object = new(corev1.Namespace)
	case "v1 ServiceAccount":
		object = new(corev1.ServiceAccount)
	case "v1 ConfigMap":
		object = new(corev1.ConfigMap)
	case "v1 ResourceQuota":
		object = new(corev1.ResourceQuota)
	case "batch/v1 CronJob":
		object = new(batchv1.CronJob)
	case "batch/v1 Job":
		object = new(batchv1.Job)
	case "apps/v1 DaemonSet":
		object = new(appsv1.DaemonSet)
	case "security.openshift.io/v1 SecurityContextConstraints":
		object = new(unstructured.Unstructured) // integration/ship/chart knows its fields
	case "networking.k8s.io/v1 NetworkPolicy":
		object = new(networkingv1.NetworkPolicy)
	case "scheduling.k8s.io/v1 PriorityClass":
		object = new(schedulingv1.PriorityClass)
	case "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":
		object = new(admissionv1.ValidatingAdmissionPolicy)
	case "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding":
		object = new(admissionv1.ValidatingAdmissionPolicyBinding)
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		object = new(rbacv1.ClusterRole)
	case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
		object = new(rbacv1.ClusterRoleBinding)
	case "rbac.authorization.k8s.io/v1 Role":
		object = new(rbacv1.Role)
	case "rbac.authorization.k8s.io/v1 RoleBinding":
		object = new(rbacv1.RoleBinding)
	default:
		return nil, fmt.Errorf("unexpected %s %s", meta.APIVersion, meta.Kind)
	}
	strict, err := kjson.UnmarshalStrict(data, object)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(strict...); err != nil {
		return nil, err
	}
	return object, nil
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
