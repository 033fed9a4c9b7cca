package deploy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	name      = "ip-reaper"
	namespace = "ip-reaper"
)

// reads are the verbs that change nothing. The run holds no watch: it looks
// once.
var reads = []string{"get", "list"}

func TestRolesHaveNoWildcard(t *testing.T) {
	for _, mode := range modes {
		for key, rules := range roles(installation(t, mode)) {
			for _, rule := range rules {
				if len(rule.NonResourceURLs) > 0 {
					t.Errorf("%s: %s: has non-resource URLs: %v", mode, key, rule.NonResourceURLs)
				}
				for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames) {
					if strings.Contains(word, "*") {
						t.Errorf("%s: %s: wildcard in %v", mode, key, rule)
					}
				}
			}
		}
	}
}

// The run writes only what backends, ledger, journal, lock and events write, and
// reads only what they and the census read.
func TestRolesHoldWhatIsUsedAndNothingElse(t *testing.T) {
	const (
		pools       = "whereabouts.cni.cncf.io/ippools: "
		overlapping = "whereabouts.cni.cncf.io/overlappingrangeipreservations: "
		attachments = "k8s.cni.cncf.io/network-attachment-definitions: list"
		leases      = "coordination.k8s.io/leases"
	)
	for mode, want := range map[string]map[string][]string{
		"plan": {
			"ClusterRole ip-reaper":             {"/pods: list", "apps/statefulsets: list", "/nodes: list"},
			"ClusterRole ip-reaper-whereabouts": {attachments, pools + "list"},
			"ClusterRole ip-reaper-overlapping": {attachments, pools + "list", overlapping + "list"},
			"ClusterRole ip-reaper-calico":      calico("ipamblocks: list", "ipamhandles: list"),
			"Role ip-reaper":                    ledger("get"),
		},
		"release": {
			"ClusterRole ip-reaper": {
				"/pods: get", "/pods: list", "apps/statefulsets: list", "/nodes: list", "events.k8s.io/events: create",
			},
			"ClusterRole ip-reaper-whereabouts": {attachments, pools + "get", pools + "list", pools + "patch"},
			"ClusterRole ip-reaper-overlapping": {
				attachments, pools + "list", overlapping + "delete", overlapping + "get", overlapping + "list", overlapping + "patch",
			},
			"ClusterRole ip-reaper-calico": calico(
				"ipamblocks: get", "ipamblocks: list", "ipamblocks: update",
				"ipamhandles: delete", "ipamhandles: get", "ipamhandles: list", "ipamhandles: update",
			),
			"Role ip-reaper": append(ledger("get", "update"),
				"/configmaps: create", "/configmaps: delete", "/configmaps: list",
				leases+": create", leases+"/ip-reaper: get", leases+"/ip-reaper: update",
			),
		},
		"restore": {
			"ClusterRole ip-reaper-restore": {
				overlapping + "create", "crd.projectcalico.org/ipamhandles: create", "projectcalico.org/ipamhandles: create",
			},
		},
	} {
		got := make(map[string][]string)
		for key, rules := range roles(installation(t, mode)) {
			got[key] = permissions(rules)
		}
		for _, permissions := range want {
			slices.Sort(permissions)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s grants (-want +got):\n%s", mode, diff)
		}
	}
}

// A dry run changes nothing, by RBAC also where the program has a bug.
func TestPlanRolesOnlyRead(t *testing.T) {
	for key, rules := range roles(installation(t, "plan")) {
		for _, rule := range rules {
			for _, verb := range rule.Verbs {
				if !slices.Contains(reads, verb) {
					t.Errorf("%s may %s %v", key, verb, rule.Resources)
				}
			}
		}
	}
}

// Whoever may release may plan. The roles have the same names, so that applying
// one component after the other leaves nothing of it behind.
func TestPlanIsPartOfTheRelease(t *testing.T) {
	plan, release := roles(installation(t, "plan")), roles(installation(t, "release"))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(plan)), slices.Sorted(maps.Keys(release))); diff != "" {
		t.Errorf("the roles have other names (-plan +release):\n%s", diff)
	}
	for key, rules := range plan {
		may := permissions(release[key])
		for _, permission := range permissions(rules) {
			if !slices.Contains(may, permission) {
				t.Errorf("%s lacks %q", key, permission)
			}
		}
	}
}

func TestEachRoleIsBoundToTheServiceAccount(t *testing.T) {
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: namespace}}
	for _, mode := range []string{"plan", "release", "restore"} {
		objects := installation(t, mode)
		find[*corev1.ServiceAccount](t, objects, name)
		bound := make(map[string]bool)
		for key, object := range objects {
			var ref rbacv1.RoleRef
			var subjects []rbacv1.Subject
			switch b := object.(type) {
			case *rbacv1.ClusterRoleBinding:
				ref, subjects = b.RoleRef, b.Subjects
			case *rbacv1.RoleBinding:
				ref, subjects = b.RoleRef, b.Subjects
			default:
				continue
			}
			bound[ref.Kind+" "+ref.Name] = true
			if ref.Name != object.GetName() || ref.APIGroup != rbacv1.GroupName {
				t.Errorf("%s: %s refers to %v", mode, key, ref)
			}
			if diff := cmp.Diff(want, subjects); diff != "" {
				t.Errorf("%s: %s is for (-want +got):\n%s", mode, key, diff)
			}
		}
		for role := range roles(objects) {
			if !bound[role] {
				t.Errorf("%s: nobody has the %s", mode, role)
			}
		}
	}
}
