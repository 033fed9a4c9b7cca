package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

const (
	name      = "ip-reaper"
	namespace = "ip-reaper"
)

// runsOnly are rights that a restore does without. A claim keeps an allocation from its
// release only, and a restore does not report how full networks are.
var runsOnly = []string{
	"k8s.cni.cncf.io/ipamclaims: list", "whereabouts.cni.cncf.io/nodeslicepools: list",
	"crd.projectcalico.org/ippools: list", "projectcalico.org/ippools: list",
	"crd.projectcalico.org/ipamconfigs: list", "projectcalico.org/ipamconfigs: list",
	"crd.projectcalico.org/ipamconfigurations: list", "projectcalico.org/ipamconfigurations: list",
	"crd.projectcalico.org/blockaffinities: list", "projectcalico.org/blockaffinities: list",
}

// roles returns the rules of every role among the objects.
func roles(objects map[string]metav1.Object) map[string][]rbacv1.PolicyRule {
	rules := make(map[string][]rbacv1.PolicyRule)
	for key, object := range objects {
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			rules[key] = role.Rules
		case *rbacv1.Role:
			rules[key] = role.Rules
		}
	}
	return rules
}

// Promise 5, and the threat model. The roles grant what backends, ledger, journals, lock and
// census need, and nothing else: a dry run can write its ledger alone, even if the program has a
// bug. A mode has roles of the same names as another, so that no role of it is left behind.
func TestRolesGrantExactlyTheNeededRights(t *testing.T) {
	const leases, machines = "coordination.k8s.io/leases", "kubevirt.io/virtualmachineinstances"
	const system = "/namespaces/kube-system: get"
	ledger := []string{"/configmaps/ip-reaper-ledger: get", "/configmaps/ip-reaper-ledger: update"}
	lock := []string{leases + ": create", leases + "/ip-reaper: get", leases + "/ip-reaper: update"}
	for mode, want := range map[string]map[string][]string{
		"plan": {
			"ClusterRole ip-reaper": {"/pods: get", "/pods: list", "apps/statefulsets: list", "/nodes: list", machines + ": list"},
			"Role ip-reaper":        ledger,
		},
		"release": {
			"ClusterRole ip-reaper": {
				"/pods: get", "/pods: list", "apps/statefulsets: list", "/nodes: list", machines + ": list", system,
			},
			"Role ip-reaper": slices.Concat(ledger, lock, []string{"/configmaps: create", "/configmaps: delete", "/configmaps: list", "/configmaps/ip-reaper-policy: get"}),
		},
		"restore": {
			"ClusterRole ip-reaper-restore": {"/nodes: list", "/pods: list", machines + ": list", system},
			"Role ip-reaper-restore":        slices.Concat(ledger, lock, []string{"/configmaps: list", "/configmaps/ip-reaper-policy: get"}),
		},
	} {
		for _, p := range backends.All() {
			role, needs := "ClusterRole ip-reaper-"+p.Name, access(p, nil, rightsOf[mode]...)
			if mode == "restore" { // it has one role for all
				role = "ClusterRole ip-reaper-restore"
				needs = slices.DeleteFunc(needs, func(one string) bool { return slices.Contains(runsOnly, one) })
			}
			if len(needs) > 0 {
				want[role] = append(want[role], needs...)
			}
		}
		got := make(map[string][]string)
		for key, rules := range roles(installation(t, mode)) {
			if len(rules) > 0 {
				got[key] = permissions(rules)
			}
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

// The account of a restore has its own roles, beside those of the CronJob's account. No other
// account has one, and no pod gets the token of an account that does not ask for it.
func TestEachRoleIsBoundToItsServiceAccount(t *testing.T) {
	for _, mode := range modes {
		objects := installation(t, mode)
		bound := make(map[string]bool)
		for key, object := range objects {
			var ref rbacv1.RoleRef
			var subjects []rbacv1.Subject
			switch o := object.(type) {
			case *corev1.ServiceAccount:
				if o.AutomountServiceAccountToken == nil || *o.AutomountServiceAccountToken {
					t.Errorf("%s: every pod of %s gets a token", mode, key)
				}
				continue
			case *rbacv1.ClusterRoleBinding:
				ref, subjects = o.RoleRef, o.Subjects
			case *rbacv1.RoleBinding:
				ref, subjects = o.RoleRef, o.Subjects
			default:
				continue
			}
			bound[ref.Kind+" "+ref.Name] = true
			account := name
			if ref.Name == "ip-reaper-restore" {
				account = ref.Name
			}
			find[*corev1.ServiceAccount](t, objects, account)
			want := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccount:" + namespace + ":" + account}}
			if diff := cmp.Diff(want, subjects); diff != "" || ref.Name != object.GetName() {
				t.Errorf("%s: %s binds %s to (-want +got):\n%s", mode, key, ref.Name, diff)
			}
		}
		if len(bound) == 0 {
			t.Errorf("%s: there is no binding", mode)
		}
		for role := range roles(objects) {
			if !bound[role] {
				t.Errorf("%s: no binding has the %s", mode, role)
			}
		}
	}
}

// The roles of people grant what the commands for them need, and nothing else. An operator may also
// look. No other role gets them: neither is aggregated into view, edit or admin, or from elsewhere.
func TestRolesOfPeopleGrantExactlyTheNeededRights(t *testing.T) {
	look := []string{
		"/pods: get", "/pods: list", "/nodes: list", "apps/statefulsets: list", "kubevirt.io/virtualmachineinstances: list", "/namespaces: get",
		"/events: list", "/configmaps/ip-reaper-ledger: list", "coordination.k8s.io/leases/ip-reaper: list",
	}
	state := []string{
		"/configmaps/ip-reaper-policy: get", "/configmaps/ip-reaper-ledger: get", "/configmaps: list",
		"batch/cronjobs: get", "batch/cronjobs: list", "batch/jobs: get", "batch/jobs: list",
	}
	want := map[string][]string{
		"ClusterRole ip-reaper-view": look, "Role ip-reaper-view": state, "ClusterRole ip-reaper-operator": look,
		"Role ip-reaper-operator": slices.Concat(state, []string{
			"/configmaps/ip-reaper-ledger: update", "/configmaps: create", "/configmaps: delete", "coordination.k8s.io/leases: create",
			"coordination.k8s.io/leases/ip-reaper: get", "coordination.k8s.io/leases/ip-reaper: update",
		}),
	}
	writes := func(one string) bool { return !strings.HasSuffix(one, ": get") && !strings.HasSuffix(one, ": list") }
	for _, p := range backends.All() {
		dry := slices.DeleteFunc(access(p, nil, plugin.Plan, plugin.Restore), writes) // of a restore, too
		want["ClusterRole ip-reaper-view"] = append(want["ClusterRole ip-reaper-view"], dry...)
		want["ClusterRole ip-reaper-operator"] = append(want["ClusterRole ip-reaper-operator"], access(p, nil, plugin.Plan, plugin.Release, plugin.Restore)...)
	}
	got := make(map[string][]string)
	for key, object := range folders(t, "../helm/ip-reaper/rights/people") {
		if role, ok := object.(*rbacv1.ClusterRole); ok && role.AggregationRule != nil {
			t.Errorf("%s takes the rights of others", key)
		}
		if diff := cmp.Diff(map[string]string{"app.kubernetes.io/name": name}, object.GetLabels()); diff != "" {
			t.Errorf("labels of %s (-want +got):\n%s", key, diff)
		}
	}
	for key, rules := range roles(folders(t, "../helm/ip-reaper/rights/people")) {
		got[key] = permissions(rules)
	}
	for role, permissions := range want {
		slices.Sort(permissions)
		want[role] = slices.Compact(permissions)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the roles of people (-want +got):\n%s", diff)
	}
}
