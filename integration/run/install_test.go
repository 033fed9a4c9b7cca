package run_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// An administrator installs a policy over the one that it was compared with, and over nothing else. What
// other clients have in the ConfigMap stays.
func TestPolicyIsInstalledOnlyOverWhatItWasComparedWith(t *testing.T) {
	f := newFixture(t)
	f.leak("web-0")
	maps := f.Kube.CoreV1().ConfigMaps(home)
	p, err := proxy.Start(f.Config)
	f.must(err)
	t.Cleanup(p.Stop)
	administrator, err := f.KubeconfigFor(p.Config(f.Config))
	f.must(err)
	install := func(kubeconfig string, code int, policy string, args ...string) reap.Result {
		t.Helper()
		r, err := reap.New()
		f.must(err)
		file := filepath.Join(t.TempDir(), "policy.yaml")
		f.must(os.WriteFile(file, []byte(policy), 0o600))
		result, err := r.Run(t.Context(), append([]string{
			"policy", "install", file, "--kubeconfig", kubeconfig, "--context", cluster.ContextName, "--state-namespace", home,
		}, args...)...)
		f.must(err)
		if result.ExitCode != code {
			t.Fatalf("exit code %d, want %d\n%s%s", result.ExitCode, code, result.Stdout, result.Stderr)
		}
		return result
	}
	want := func(policy string) *corev1.ConfigMap {
		t.Helper()
		cm, err := maps.Get(t.Context(), state.PolicyName, metav1.GetOptions{})
		f.must(err)
		if diff := cmp.Diff(policy, cm.Data["policy.yaml"]); diff != "" {
			t.Fatalf("the installed policy (-want +got):\n%s", diff)
		}
		return cm
	}
	const write, changed = "--dry-run=false", "changed meanwhile, and nothing was written: look again"

	install(administrator, reap.ExitDone, patient)
	if _, err := maps.Get(t.Context(), state.PolicyName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("a dry run leaves a policy: %v", err)
	}
	f.wantText(install(administrator, reap.ExitDone, patient, write).Stdout, "ConfigMap "+home+"/ip-reaper-policy has this policy now")
	cm := want(patient)
	cm.Labels, cm.Data["notes"] = map[string]string{"team": "net"}, "ours"
	_, err = maps.Update(t.Context(), cm, metav1.UpdateOptions{FieldManager: "kubectl"})
	f.must(err)
	f.wantText(install(administrator, reap.ExitDone, atOnce).Stdout, "compared with the installed policy: 1 more due")
	want(patient)
	install(administrator, reap.ExitDone, atOnce, write)
	if cm := want(atOnce); cm.Labels["team"] != "net" || cm.Data["notes"] != "ours" {
		t.Errorf("what others have in the ConfigMap is %v, %v", cm.Labels, cm.Data)
	}
	before := want(atOnce).ResourceVersion
	f.wantText(install(administrator, reap.ExitDone, atOnce, write).Stdout, "nothing changes: ")
	if after := want(atOnce).ResourceVersion; after != before {
		t.Errorf("the same policy is written again")
	}

	// Nobody in the group of operators may, nor who may only look.
	for role, says := range map[string]string{"view": `cannot patch resource "configmaps"`, "operator": "configmaps"} {
		g, err := reap.PeopleGrant(role)
		f.must(err)
		account, err := reap.InstallAccount(t.Context(), f.Cluster, g)
		f.must(err)
		kubeconfig, err := f.KubeconfigFor(account.Config)
		f.must(err)
		result := install(kubeconfig, reap.ExitError, patient, write)
		t.Log(result.Stderr)
		f.wantText(result.Stderr, says)
		f.must(account.Remove(context.WithoutCancel(t.Context())))
		want(atOnce)
	}

	for name, meanwhile := range map[string]func() error{
		"changed": func() error {
			return reap.Memory{Cluster: f.Cluster, Namespace: home}.InstallPolicy(t.Context(), atOnce+"\n")
		},
		"deleted": func() error { return maps.Delete(t.Context(), state.PolicyName, metav1.DeleteOptions{}) },
		"created": func() error {
			return reap.Memory{Cluster: f.Cluster, Namespace: home}.InstallPolicy(t.Context(), atOnce)
		},
	} {
		if name == "created" {
			err := maps.Delete(t.Context(), state.PolicyName, metav1.DeleteOptions{})
			if !apierrors.IsNotFound(err) {
				f.must(err)
			}
		} else {
			f.must(reap.Memory{Cluster: f.Cluster, Namespace: home}.InstallPolicy(t.Context(), atOnce))
		}
		p.Before(proxy.First(1, proxy.On("create configmaps", "patch configmaps")), func(context.Context, proxy.Request) proxy.Action {
			f.must(meanwhile())
			return proxy.Pass()
		})
		result := install(administrator, reap.ExitError, patient, write)
		t.Log(name, result.Stderr)
		f.wantText(result.Stderr, changed)
	}
}
