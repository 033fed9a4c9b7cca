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
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// load reads every manifest, by kind and name.
func load(t *testing.T) map[string]metav1.Object {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, matches...)
	}
	objects := make(map[string]metav1.Object)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
			doc, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			object, err := decode(doc)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			key := kind(object) + " " + object.GetName()
			if _, twice := objects[key]; twice {
				t.Errorf("%s: a second %s", file, key)
			}
			objects[key] = object
		}
	}
	return objects
}

// decode reads one object and refuses what its type does not know.
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
	case "batch/v1 CronJob":
		object = new(batchv1.CronJob)
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

// kind names the type of an object: *v1.ClusterRole is a ClusterRole.
func kind(object any) string {
	_, after, _ := strings.Cut(fmt.Sprintf("%T", object), ".")
	return after
}

// find returns the object of a type and name.
func find[T metav1.Object](t *testing.T, name string) T {
	t.Helper()
	var none T
	key := kind(none) + " " + name
	object, ok := load(t)[key].(T)
	if !ok {
		t.Fatalf("there is no %s", key)
	}
	return object
}

// container returns the CronJob's only container.
func container(t *testing.T) corev1.Container {
	t.Helper()
	containers := find[*batchv1.CronJob](t, name).Spec.JobTemplate.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		t.Fatalf("%d containers, want 1", len(containers))
	}
	return containers[0]
}

// roles returns the rules of every role.
func roles(t *testing.T) map[string][]rbacv1.PolicyRule {
	t.Helper()
	rules := make(map[string][]rbacv1.PolicyRule)
	for key, object := range load(t) {
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			rules[key] = role.Rules
		case *rbacv1.Role:
			rules[key] = role.Rules
		}
	}
	return rules
}

// permissions spells rules out, one "group/resource[/name]: verb" each, sorted.
func permissions(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if len(rule.ResourceNames) == 0 {
						all = append(all, fmt.Sprintf("%s/%s: %s", group, resource, verb))
					}
					for _, name := range rule.ResourceNames {
						all = append(all, fmt.Sprintf("%s/%s/%s: %s", group, resource, name, verb))
					}
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// ledger returns the permissions for the verbs on the ledger's ten shards.
func ledger(verbs ...string) []string {
	var all []string
	for _, verb := range verbs {
		all = append(all, "/configmaps/ip-reaper-ledger: "+verb)
		for shard := 1; shard <= 9; shard++ {
			all = append(all, fmt.Sprintf("/configmaps/ip-reaper-ledger-%d: %s", shard, verb))
		}
	}
	return all
}

// definitions returns the permission to look at definitions of custom resources.
func definitions(names ...string) []string {
	var all []string
	for _, name := range names {
		all = append(all, "apiextensions.k8s.io/customresourcedefinitions/"+name+": get")
	}
	return all
}

// calico returns the permissions in both of Calico's groups, with those that are
// needed to know which of them is in use, and what is kept back there.
func calico(permissions ...string) []string {
	all := append(definitions("datastoremigrations.migration.projectcalico.org",
		"ipreservations.crd.projectcalico.org", "ipreservations.projectcalico.org"),
		"migration.projectcalico.org/datastoremigrations: list")
	for _, permission := range append(permissions, "clusterinformations/default: get", "ipreservations: list") {
		all = append(all, "crd.projectcalico.org/"+permission, "projectcalico.org/"+permission)
	}
	return all
}

// argument returns the value of a --flag=value.
func argument(c corev1.Container, flag string) string {
	for _, arg := range c.Args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
	}
	return ""
}

// interval returns the shortest time between two starts of a schedule that
// lists minutes of every hour.
func interval(t *testing.T, schedule string) time.Duration {
	t.Helper()
	minutes, ok := strings.CutSuffix(schedule, " * * * *")
	if !ok {
		t.Fatalf("schedule %q is not a list of minutes", schedule)
	}
	var starts []int
	for text := range strings.SplitSeq(minutes, ",") {
		minute, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("schedule %q is not a list of minutes", schedule)
		}
		starts = append(starts, minute)
	}
	slices.Sort(starts)
	shortest := 60 + starts[0] - starts[len(starts)-1]
	for i := 1; i < len(starts); i++ {
		shortest = min(shortest, starts[i]-starts[i-1])
	}
	return time.Duration(shortest) * time.Minute
}
