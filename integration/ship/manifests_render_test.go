package ship_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// What is shipped, and what an operator makes of it, renders to these objects.
func TestKustomizationsRenderToTheseObjects(t *testing.T) {
	var restrained []string
	bound := func(suffix string, roles ...string) (keys []string) {
		keys = slices.Clone(restrained)
		for _, role := range roles {
			keys = append(keys, "ClusterRole "+role+suffix, "ClusterRoleBinding "+role+suffix)
		}
		if suffix == "" {
			keys = append(keys, "ConfigMap ip-reaper-policy", "ConfigMap ip-reaper-ledger")
		}
		return append(keys, "Namespace ip-reaper", "ServiceAccount ip-reaper"+suffix, "Role ip-reaper"+suffix, "RoleBinding ip-reaper"+suffix)
	}
	for _, policy := range []string{
		"pools", "reservations", "blocks", "handles", "configmaps", "leases", "events", "other",
		"restore-pools", "restore-reservations", "restore-blocks", "restore-handles", "restore-other",
	} {
		restrained = append(restrained, "ValidatingAdmissionPolicy ip-reaper-"+policy, "ValidatingAdmissionPolicyBinding ip-reaper-"+policy)
	}
	stores := []string{"ip-reaper", "ip-reaper-whereabouts", "ip-reaper-overlapping", "ip-reaper-calico"}
	jobs := []string{
		"CronJob ip-reaper-outage-plan", "CronJob ip-reaper-outage-now", "CronJob ip-reaper-outage-wait", "CronJob ip-reaper-outage-override",
	}
	installed := append(bound("", stores...), "CronJob ip-reaper")
	restoring := []string{"CronJob ip-reaper"}
	for _, kind := range []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} {
		restoring = append(restoring, kind+" ip-reaper-restore")
	}
	onNodes := []string{
		"Namespace ip-reaper-node", "ServiceAccount ip-reaper-node", "ResourceQuota ip-reaper-node", "ConfigMap ip-reaper-node-policy", "DaemonSet ip-reaper-node",
	}
	for name, tt := range map[string]struct {
		folder string
		want   []string
	}{
		"cronjob":               {shipped(t, "cronjob"), installed},
		"job":                   {shipped(t, "job"), append(bound("-outage", stores...), jobs...)},
		"release":               {of("release").write(t), installed},
		"release with restore":  {of("release", "restore").write(t), append(bound("", stores...), restoring...)},
		"release with etcd":     {of("release", "calico-etcd").write(t), append(bound("", stores[:3]...), "CronJob ip-reaper")},
		"network policy":        {of("release", "network-policy", "openshift").write(t), append(bound("", stores...), "CronJob ip-reaper", "NetworkPolicy ip-reaper")},
		"cronjob with metrics":  {overlay{Resources: []string{"cronjob"}, Components: []string{"metrics"}}.write(t), installed},
		"job with etcd":         {overlay{Resources: []string{"job"}, Components: []string{"calico-etcd"}}.write(t), append(bound("-outage", stores[:3]...), jobs...)},
		"everything but a plan": {of("release", "restore", "calico-etcd", "metrics").write(t), append(bound("", stores[:3]...), restoring...)},
		"large":                 {of("release", "large").write(t), append(installed, "Role ip-reaper-large", "RoleBinding ip-reaper-large")},
		"node":                  {shipped(t, "node"), onNodes},
		"cronjob and node": {
			overlay{Resources: []string{"cronjob"}, Components: []string{"node", "node-release", "node-api-server", "node-kindnet", "node-crio"}}.write(t),
			slices.Concat(installed, onNodes, []string{"ClusterRole ip-reaper-node", "ClusterRoleBinding ip-reaper-node"}),
		},
		"without policies": {
			of("release", "no-admission").write(t),
			slices.DeleteFunc(slices.Clone(installed), func(key string) bool { return slices.Contains(restrained, key) }),
		},
	} {
		got := slices.Sorted(maps.Keys(render(t, tt.folder)))
		if diff := cmp.Diff(slices.Sorted(slices.Values(tt.want)), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Each thing that an object names is there: accounts, roles, the policy that a pod reads. The
// Jobs of an outage read that of the CronJob.
func TestWhatIsNamedIsThere(t *testing.T) {
	policies := every[*corev1.ConfigMap](t, render(t, shipped(t, "cronjob")))
	for _, folder := range []string{"cronjob", "job"} {
		all := render(t, shipped(t, folder))
		accounts := every[*corev1.ServiceAccount](t, all)
		check := func(name string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
			if _, ok := all[role.Kind+" "+role.Name]; !ok {
				t.Errorf("%s: %s is for %s %s, which is not there", folder, name, role.Kind, role.Name)
			}
			for _, s := range subjects {
				if s.Kind != "ServiceAccount" || s.Namespace != home || accounts[s.Name] == nil {
					t.Errorf("%s: %s binds %v, which is not there", folder, name, s)
				}
			}
		}
		for name, b := range every[*rbacv1.ClusterRoleBinding](t, all) {
			check(name, b.RoleRef, b.Subjects)
		}
		for name, b := range every[*rbacv1.RoleBinding](t, all) {
			check(name, b.RoleRef, b.Subjects)
		}
		for name, c := range every[*batchv1.CronJob](t, all) {
			spec := podSpec(c)
			if accounts[spec.ServiceAccountName] == nil {
				t.Errorf("%s: the account %s of %s is not there", folder, spec.ServiceAccountName, name)
			}
			mounted := policies[spec.Volumes[0].ConfigMap.Name]
			if mounted == nil {
				t.Fatalf("%s: the ConfigMap %s of %s is not there", folder, spec.Volumes[0].ConfigMap.Name, name)
			}
			file := filepath.Base(argument(spec.Containers[0].Args, "--policy"))
			if _, err := policy.Load([]byte(mounted.Data[file]), plugin.Known(backends.All())); err != nil {
				t.Errorf("%s: the policy %s of %s: %v", folder, file, name, err)
			}
		}
	}
}

// The account for outages may what one may that releases, no more and no less.
func TestOutageRightsAreThoseOfARelease(t *testing.T) {
	release, outage := render(t, of("release").write(t)), render(t, shipped(t, "job"))
	roles := map[string][]rbacv1.PolicyRule{}
	for name, r := range every[*rbacv1.ClusterRole](t, release) {
		roles["ClusterRole "+name+"-outage"] = r.Rules
	}
	for name, r := range every[*rbacv1.Role](t, release) {
		roles["Role "+name+"-outage"] = r.Rules
	}
	got := map[string][]rbacv1.PolicyRule{}
	for name, r := range every[*rbacv1.ClusterRole](t, outage) {
		got["ClusterRole "+name] = r.Rules
	}
	for name, r := range every[*rbacv1.Role](t, outage) {
		got["Role "+name] = r.Rules
	}
	if diff := cmp.Diff(roles, got); diff != "" {
		t.Errorf("rules (-release +outage):\n%s", diff)
	}
}

// An operator's overlay gives another image, and another policy under the same name.
func TestOverlayReplacesImageAndPolicy(t *testing.T) {
	const text = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ndryRun: true\ngracePeriod: 1h\n"
	all := render(t, overlay{
		Resources: []string{"cronjob"},
		Images:    []image{{"ghcr.io/ip-reaper/ip-reaper", "registry.example.com/ip-reaper", "e2e"}},
		Maps:      []configMap{{"ip-reaper-policy", home, "replace", []string{"policy.yaml"}}},
		Files:     map[string]string{"policy.yaml": text},
	}.write(t))
	got := every[*corev1.ConfigMap](t, all)["ip-reaper-policy"]
	if got == nil || got.Data["policy.yaml"] != text {
		t.Errorf("the ConfigMap is %v, want that of the overlay", got)
	}
	c := every[*batchv1.CronJob](t, all)["ip-reaper"]
	if got, want := podSpec(c).Containers[0].Image, "registry.example.com/ip-reaper:e2e"; got != want {
		t.Errorf("image %s, want %s", got, want)
	}
}

// argument returns the value of a --flag=value.
func argument(args []string, flag string) string {
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
	}
	return ""
}
