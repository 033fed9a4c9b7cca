package deploy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ip-reaper/ip-reaper/backends"
)

const (
	name      = "ip-reaper"
	namespace = "ip-reaper"
)

// reads are the verbs that change nothing. "watch" is not one of them: the program
// holds no watch.
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

// The roles grant what backends, ledger, journals, lock, events and census need,
// and nothing else.
func TestRolesGrantExactlyTheNeededRights(t *testing.T) {
	const leases, machines = "coordination.k8s.io/leases", "kubevirt.io/virtualmachineinstances"
	for mode, want := range map[string]map[string][]string{
		"plan": {
			"ClusterRole ip-reaper": {"/pods: list", "apps/statefulsets: list", "/nodes: list", machines + ": list"},
			"Role ip-reaper":        ledger(),
		},
		"release": {
			"ClusterRole ip-reaper": {
				"/pods: get", "/pods: list", "apps/statefulsets: list", "/nodes: list", machines + ": list", "events.k8s.io/events: create",
			},
			"Role ip-reaper": append(ledger(),
				"/configmaps: create", "/configmaps: delete", "/configmaps: list",
				leases+": create", leases+"/ip-reaper: get", leases+"/ip-reaper: update",
			),
		},
		"restore": {
			"ClusterRole ip-reaper-restore": {"/pods: list", machines + ": list"},
			"Role ip-reaper-restore":        append(ledger(), "/configmaps: list", leases+": create", leases+"/ip-reaper: get", leases+"/ip-reaper: update"),
		},
	} {
		for _, p := range backends.All() {
			role := "ClusterRole ip-reaper-" + p.Name
			if mode == "restore" {
				role = "ClusterRole ip-reaper-restore" // it is one for all
			}
			needs := access(p, nil, rightsOf(mode)...)
			if mode == "restore" {
				needs = slices.DeleteFunc(needs, func(one string) bool { return slices.Contains(runsOnly, one) })
			}
			if len(needs) > 0 {
				want[role] = append(want[role], needs...)
			}
		}
		got := make(map[string][]string)
		for key, rules := range roles(installation(t, mode)) {
			got[key] = permissions(rules)
		}
		for role, permissions := range want {
			slices.Sort(permissions)
			want[role] = slices.Compact(permissions) // two backends may need the same
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s grants (-want +got):\n%s", mode, diff)
		}
	}
}

// A dry run cannot change anything but its ledger, even if the program has a bug.
func TestPlanRolesWriteTheLedgerOnly(t *testing.T) {
	for key, rules := range roles(installation(t, "plan")) {
		for _, permission := range permissions(rules) {
			_, verb, _ := strings.Cut(permission, ": ")
			if !slices.Contains(reads, verb) && !slices.Contains(ledger(), permission) {
				t.Errorf("%s has %q", key, permission)
			}
		}
	}
}

// An account that only plans may not create the ledger, so it is installed. If it had
// data, or empty fields for them, another apply would remove what a run wrote.
func TestLedgerIsInstalledWithoutData(t *testing.T) {
	for _, mode := range modes {
		cm := find[*corev1.ConfigMap](t, installation(t, mode), "ip-reaper-ledger")
		if cm.Data != nil || cm.BinaryData != nil || cm.Immutable != nil {
			t.Errorf("%s: the ledger has data: %v", mode, cm)
		}
	}
}

// The roles of components/release include those of components/plan. They have the
// same names, so applying one component after the other leaves no role behind.
func TestReleaseRolesIncludePlanRoles(t *testing.T) {
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

// The account of a restore has its own roles, beside those of the CronJob's account.
func TestEachRoleIsBoundToItsServiceAccount(t *testing.T) {
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
			account := name
			if ref.Name == "ip-reaper-restore" {
				account = ref.Name
				find[*corev1.ServiceAccount](t, objects, account)
			}
			want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: namespace}}
			if diff := cmp.Diff(want, subjects); diff != "" {
				t.Errorf("%s: subjects of %s (-want +got):\n%s", mode, key, diff)
			}
		}
		for role := range roles(objects) {
			if !bound[role] {
				t.Errorf("%s: no binding has the %s", mode, role)
			}
		}
	}
}
