package ship_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ip-reaper/ip-reaper/integration/ship/kustomize"
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
			keys = append(keys, "ConfigMap ip-reaper-policy", "ConfigMap ip-reaper-ledger", "ResourceQuota ip-reaper",
				"ClusterRole ip-reaper-view", "Role ip-reaper-view", "ClusterRole ip-reaper-operator", "Role ip-reaper-operator")
		}
		return append(keys, "Namespace ip-reaper", "ServiceAccount ip-reaper"+suffix, "Role ip-reaper"+suffix, "RoleBinding ip-reaper"+suffix)
	}
	for _, policy := range []string{"pools", "reservations", "blocks", "handles", "configmaps", "leases", "other",
		"restore-pools", "restore-reservations", "restore-blocks", "restore-handles"} {
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
		"cronjob":               {kustomize.Shipped(t, "cronjob"), installed},
		"job":                   {kustomize.Shipped(t, "job"), append(bound("-outage", stores...), jobs...)},
		"release":               {of("release").Write(t), installed},
		"release with restore":  {of("release", "restore").Write(t), append(bound("", stores...), restoring...)},
		"release with etcd":     {of("release", "calico-etcd").Write(t), append(bound("", stores[:3]...), "CronJob ip-reaper")},
		"network policy":        {of("release", "network-policy", "openshift").Write(t), append(bound("", stores...), "CronJob ip-reaper", "NetworkPolicy ip-reaper")},
		"cronjob with metrics":  {kustomize.Overlay{Resources: []string{"cronjob"}, Components: []string{"metrics"}}.Write(t), installed},
		"job with etcd":         {kustomize.Overlay{Resources: []string{"job"}, Components: []string{"calico-etcd"}}.Write(t), append(bound("-outage", stores[:3]...), jobs...)},
		"everything but a plan": {of("release", "restore", "calico-etcd", "metrics").Write(t), append(bound("", stores[:3]...), restoring...)},
		"node":                  {kustomize.Shipped(t, "node"), onNodes},
		"cronjob and node": {
			kustomize.Overlay{Resources: []string{"cronjob"}, Components: []string{"node", "node-release", "node-api-server", "node-kindnet"}}.Write(t),
			slices.Concat(installed, onNodes, []string{"ClusterRole ip-reaper-node", "ClusterRoleBinding ip-reaper-node"}),
		},
		"without policies": {
			of("release", "restore", "no-admission").Write(t),
			slices.DeleteFunc(append(bound("", stores...), restoring...), func(key string) bool { return strings.HasPrefix(key, "ValidatingAdmissionPolicy") }),
		},
	} {
		got := slices.Sorted(maps.Keys(render(t, tt.folder)))
		if diff := cmp.Diff(slices.Sorted(slices.Values(tt.want)), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What a page applies runs the image that it had its reader push.
func TestPagesApplyTheImageThatTheyPush(t *testing.T) {
	for _, p := range pages(t) {
		if !p.installs() {
			continue
		}
		dir, err := filepath.EvalSymlinks(t.TempDir())
		must(t, err)
		must(t, os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS(filepath.Join(root(t), "deploy"))))
		pushed, applied := "", 0
		for _, b := range p.blocks {
			if file := filepath.Join(dir, b.file()); b.file() != "" {
				must(t, os.MkdirAll(filepath.Dir(file), 0o700))
				must(t, os.WriteFile(file, []byte(b.text()), 0o600))
			}
			for _, c := range b.commands() {
				words := strings.Fields(c.typed)
				if strings.HasPrefix(c.typed, "docker push ") {
					pushed = words[2]
				}
				if !strings.HasPrefix(c.typed, "kubectl apply -k ") {
					continue
				}
				applied++
				for name, job := range everyPod(t, render(t, filepath.Join(dir, words[3]))) {
					if got := podSpec(job).Containers[0].Image; got != pushed {
						t.Errorf("%s:%d: CronJob %s has the image %s, and %s was pushed", p.path, c.line, name, got, pushed)
					}
				}
			}
		}
		if pushed == "" || applied == 0 {
			t.Errorf("%s pushes %q and applies %d folders", p.path, pushed, applied)
		}
	}
}

// The page counts what is installed.
func TestInstallPageCountsTheObjects(t *testing.T) {
	for column, folder := range []string{"cronjob", "all"} {
		left := map[string]int{}
		for name := range render(t, kustomize.Shipped(t, folder)) {
			kind, _, _ := strings.Cut(name, " ")
			left[kind]++
		}
		for _, row := range rows(t, "docs/install.md", "objects") {
			count := 0
			for kind := range strings.SplitSeq(row[0], ", ") {
				count += left[kind]
				delete(left, kind)
			}
			if row[column+1] != strconv.Itoa(count) {
				t.Errorf("%s: the page says %s %s, and there are %d", folder, row[column+1], row[0], count)
			}
		}
		if len(left) > 0 {
			t.Errorf("%s: the page does not have %v", folder, left)
		}
	}
}

// The account for outages may what one may that releases, no more and no less.
func TestOutageRightsAreThoseOfARelease(t *testing.T) {
	release, outage := render(t, of("release").Write(t)), render(t, kustomize.Shipped(t, "job"))
	roles := map[string][]rbacv1.PolicyRule{}
	for name, r := range every[*rbacv1.ClusterRole](t, release) {
		roles["ClusterRole "+name+"-outage"] = r.Rules
	}
	for name, r := range every[*rbacv1.Role](t, release) {
		roles["Role "+name+"-outage"] = r.Rules
	}
	for _, people := range []string{"view", "operator"} {
		delete(roles, "ClusterRole ip-reaper-"+people+"-outage")
		delete(roles, "Role ip-reaper-"+people+"-outage")
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

// argument returns the value of a --flag=value.
func argument(args []string, flag string) string {
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
	}
	return ""
}
