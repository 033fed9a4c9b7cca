package ship_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/policy"
)

// everything switches on all that can be installed.
const everything = "mode: release\noutage: {enabled: true}\nrestore: {enabled: true}\n"

// The accounts, also that of a restore, have no right to the store of a backend that is off.
func TestBackendThatIsOffHasNoRights(t *testing.T) {
	on := rights(t, theRelease.objects(t, everything))
	for backend, resources := range map[string][]string{
		"whereabouts": {"whereabouts.cni.cncf.io ippools patch"},
		"overlapping": {"whereabouts.cni.cncf.io overlappingrangeipreservations "},
		"calico":      {"crd.projectcalico.org ", "projectcalico.org "},
	} {
		objects := theRelease.objects(t, everything+fmt.Sprintf("backends: {%s: {enabled: false}}", backend))
		off := rights(t, objects)
		for _, resource := range resources {
			has := func(right string) bool { return strings.HasPrefix(right, resource) }
			if !slices.ContainsFunc(on, has) {
				t.Errorf("nothing gives %s although %s is on", resource, backend)
			}
			if slices.ContainsFunc(off, has) {
				t.Errorf("something gives %s although %s is off", resource, backend)
			}
		}
		for file, p := range loadPolicies(t, objects["ConfigMap ip-reaper/ip-reaper-policy"]) {
			if p.Backends[backend].Enabled != policy.Off || len(p.Backends) != 1 {
				t.Errorf("%s: backends = %+v, want %s off and nothing else", file, p.Backends, backend)
			}
		}
	}
}

// rights are those that the ClusterRoles give that are bound to an account, as "group resource verb".
func rights(t *testing.T, objects map[string]unstructured.Unstructured) []string {
	t.Helper()
	return rightsOf(t, objects, func(role string) bool { return objects["ClusterRoleBinding /"+role].Object != nil })
}

// rightsOf are those that some ClusterRoles give.
func rightsOf(t *testing.T, objects map[string]unstructured.Unstructured, some func(role string) bool) []string {
	t.Helper()
	var all []string
	for _, object := range objects {
		if object.GetKind() != "ClusterRole" || !some(object.GetName()) {
			continue
		}
		for _, rule := range convert[rbacv1.ClusterRole](t, object).Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all = append(all, group+" "+resource+" "+verb)
					}
				}
			}
		}
	}
	return all
}

// An operator who protects addresses by another resource need not write a role.
func TestReservedIPsBringTheirRights(t *testing.T) {
	const reserved = `
backends:
  reservedIPs:
    resources:
    - {resource: {group: a.example.com, version: v1, resource: holds}, address: .spec.ip, ttl: .spec.ttl}
    - {resource: {group: b.example.com, version: v1, resource: keeps}, pod: .spec.pod, ttl: .spec.ttl}
`
	both := []string{"a.example.com holds list", "b.example.com keeps list"}
	for _, tt := range []struct {
		name, values string
		accounts     int
	}{
		{"plan", "", 1},
		{"release", "mode: release", 1},
		{"outage", "outage: {enabled: true}", 2},
		{"restore", "mode: release\nrestore: {enabled: true}", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects := theRelease.objects(t, tt.values+reserved)
			var got []string
			for _, right := range rights(t, objects) {
				if strings.Contains(right, "example.com") {
					got = append(got, right)
				}
			}
			want := slices.Repeat(both, tt.accounts)
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
			for _, role := range []string{"ip-reaper-view", "ip-reaper-operator"} {
				people := slices.DeleteFunc(rightsOf(t, objects, func(name string) bool { return name == role }),
					func(right string) bool { return !strings.Contains(right, "example.com") })
				if diff := cmp.Diff(both, people); diff != "" {
					t.Errorf("rights of the ClusterRole %s (-want +got):\n%s", role, diff)
				}
			}
			if _, ok := objects["ClusterRoleBinding /ip-reaper-reservedips"]; !ok {
				t.Error("nothing binds them")
			}
			for _, p := range loadPolicies(t, objects["ConfigMap ip-reaper/ip-reaper-policy"]) {
				settings, ok := p.Backends[reservedips.Name].Settings.(*reservedips.Settings)
				if !ok || len(settings.Resources) != 2 {
					t.Errorf("the policy reserves by %+v", p.Backends)
				}
			}
		})
	}
}
