package chart_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	jobs "github.com/ip-reaper/ip-reaper/integration/kit/job"
)

func TestMain(m *testing.M) {
	limits, err := filepath.Abs(filepath.Join("testdata", "admission.yaml"))
	if err != nil {
		panic(err)
	}
	kit.Main(m, kit.Options{Flags: map[string]string{"admission-control-config-file": limits}})
}

// apply installs manifests as helm does, by server-side apply, until the test is over.
func apply(t *testing.T, c *cluster.Cluster, manifests string) {
	t.Helper()
	out, err := c.Kubectl(t.Context(), manifests, "apply", "--server-side", "--field-manager=helm", "--validate=strict", "-f", "-")
	if err != nil {
		t.Fatalf("apply: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		out, err := c.Kubectl(context.WithoutCancel(t.Context()), manifests, "delete", "--ignore-not-found", "-f", "-")
		if err != nil {
			t.Errorf("delete: %v\n%s", err, out)
		}
	})
}

// longest is as long as helm lets the name of a release be.
var longest = strings.Repeat("a-very-long-name.", 4)[:52] + "z"

func TestAPIServerAcceptsTheObjects(t *testing.T) {
	c := cluster.StartT(t)
	for _, tt := range []struct{ name, release, values string }{
		{"plan", name, ""},
		{"everything", name, everything},
		{"everything with etcd", name, everything + etcdValues + metricsValues},
		{"every field", name, everyField},
		{"another release", "prod", everything},
		{"the longest name", longest, everything},
		{"the longest prefix", name, "fullnameOverride: " + strings.Repeat("a", 36) + "\n" + everything},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := target{tt.release, c.Namespace(t)}
			out, err := c.Kubectl(t.Context(), to.manifests(t, tt.values), "create", "--dry-run=server", "--validate=strict", "-f", "-")
			if err != nil {
				t.Errorf("create: %v\n%s", err, out)
			}
		})
	}
}

func TestNamesBeginWithTheRelease(t *testing.T) {
	for _, tt := range []struct{ release, prefix string }{
		{"ip-reaper", "ip-reaper"},
		{"ip-reaper-prod", "ip-reaper-prod"},
		{"prod", "prod-ip-reaper"},
		{"a.b", "a.b-ip-reaper"},
		{strings.Repeat("a", 35) + ".b", strings.Repeat("a", 35)},
	} {
		to := target{tt.release, "elsewhere"}
		for key, object := range to.objects(t, everything) {
			got := object.GetName()
			if got != tt.prefix && !strings.HasPrefix(got, tt.prefix+"-") && !strings.HasPrefix(got, "ip-reaper-ledger") {
				t.Errorf("release %s: %s does not begin with %s", tt.release, key, tt.prefix)
			}
		}
		// What the program calls so has the same name everywhere.
		text := to.manifests(t, everything)
		for _, fixed := range []string{"resourceNames: [ip-reaper]\n", "resourceNames: [ip-reaper-ledger]\n"} {
			if !strings.Contains(text, fixed) {
				t.Errorf("release %s: there is no %q", tt.release, fixed)
			}
		}
	}
}

// What runs remember stays, also if the mode changes.
func TestUpgradeKeepsTheLedger(t *testing.T) {
	c := cluster.StartT(t)
	to := target{"remembers", c.Namespace(t)}
	apply(t, c, to.manifests(t, ""))
	written := jobs.WriteLedger(t, c, to.namespace)
	for _, text := range []string{"", "mode: release", ""} {
		apply(t, c, to.manifests(t, text))
		if diff := cmp.Diff(written, jobs.Ledger(t, c, to.namespace)); diff != "" {
			t.Errorf("the ledger after an upgrade to %q (-written +got):\n%s", text, diff)
		}
	}
}

// An upgrade from release to plan takes the rights away.
func TestUpgradeToPlanLowersTheRights(t *testing.T) {
	c := cluster.StartT(t)
	to := target{"lowered", c.Namespace(t)}
	const part = "whereabouts"
	role := fmt.Sprintf("lowered-ip-reaper-%s", part)
	verbs := func() (all []string) {
		live, err := c.Kube.RbacV1().ClusterRoles().Get(t.Context(), role, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range live.Rules {
			all = append(all, rule.Verbs...)
		}
		return all
	}
	apply(t, c, to.manifests(t, "mode: release"))
	if diff := cmp.Diff([]string{"get", "list", "patch", "list", "list", "list"}, verbs()); diff != "" {
		t.Errorf("verbs of %s with mode: release (-want +got):\n%s", role, diff)
	}

	apply(t, c, to.manifests(t, ""))
	for key, object := range to.objects(t, "") {
		if object.GetKind() != "ClusterRole" {
			continue
		}
		var want rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &want); err != nil {
			t.Fatal(err)
		}
		live, err := c.Kube.RbacV1().ClusterRoles().Get(t.Context(), object.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Rules, live.Rules); diff != "" {
			t.Errorf("rules of %s (-want +got):\n%s", key, diff)
		}
	}
	if diff := cmp.Diff([]string{"list", "list", "list", "list"}, verbs()); diff != "" {
		t.Errorf("verbs of %s with mode: plan (-want +got):\n%s", role, diff)
	}
}
