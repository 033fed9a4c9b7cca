package deploy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

func TestManifestsHaveKnownKindsAndFields(t *testing.T) {
	count := 0
	err := filepath.WalkDir("kustomize", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		dir, err := filepath.Rel("kustomize", path)
		if err != nil {
			return err
		}
		for _, file := range manifests(t, dir) {
			count += len(read(t, file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count == 0 {
		t.Error("kustomize/ has no manifests")
	}
}

func TestUnknownFieldsAreRefused(t *testing.T) {
	for _, doc := range []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: a, label: {}}}",
		"{apiVersion: v1, kind: Namespace, Metadata: {name: a}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: a, name: b}}",
		"{apiVersion: v1, kind: Namespaces, metadata: {name: a}}",
		"{apiVersion: v2, kind: Namespace, metadata: {name: a}}",
	} {
		if _, err := decode([]byte(doc)); err == nil {
			t.Errorf("decode(%s) has no error", doc)
		}
	}
}

func TestAllObjectsLiveInTheOneNamespace(t *testing.T) {
	for _, mode := range modes {
		for key, object := range installation(t, mode) {
			want := namespace
			switch object.(type) {
			case *corev1.Namespace, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding,
				*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding:
				want = ""
			}
			if got := object.GetNamespace(); got != want {
				t.Errorf("%s: %s is in namespace %q, want %q", mode, key, got, want)
			}
		}
	}
}

func TestNamespaceEnforcesPodSecurity(t *testing.T) {
	labels := find[*corev1.Namespace](t, installation(t, "plan"), namespace).Labels
	for _, mode := range []string{"enforce", "audit", "warn"} {
		if got := labels["pod-security.kubernetes.io/"+mode]; got != "restricted" {
			t.Errorf("pod-security.kubernetes.io/%s = %q, want restricted", mode, got)
		}
	}
}

// An installation is a dry run unless another component is chosen.
func TestShippedPoliciesLoadAndOnlyReleaseReleases(t *testing.T) {
	for file, dryRun := range map[string]bool{
		"components/plan/policy.yaml":         true,
		"components/release/policy.yaml":      false,
		"components/node/policy.yaml":         true,
		"components/node-release/policy.yaml": false,
	} {
		data, err := os.ReadFile(filepath.Join("kustomize", file))
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Load(data, plugin.Known(backends.All()))
		if err != nil {
			t.Fatalf("%s does not load: %v", file, err)
		}
		if p.DryRun == nil || *p.DryRun != dryRun {
			t.Errorf("%s: dryRun is %v, want %v", file, p.DryRun, dryRun)
		}
	}
	for _, folder := range []string{"cronjob", "all"} {
		text, err := os.ReadFile(filepath.Join("kustomize", folder, "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if last := strings.TrimSpace(string(text)); !strings.HasSuffix(last, "\n- ../components/plan") {
			t.Errorf("the last line of %s does not choose the component plan:\n%s", folder, last)
		}
	}
}

func TestThePodReadsThePolicyThatIsMounted(t *testing.T) {
	pod := cronJob(t).Spec.JobTemplate.Spec.Template.Spec
	c := container(t)
	if len(pod.Volumes) != 1 || len(c.VolumeMounts) != 1 || c.VolumeMounts[0].Name != pod.Volumes[0].Name {
		t.Fatalf("volumes %v, mounts %v, want one volume that is mounted", pod.Volumes, c.VolumeMounts)
	}
	dir, file := filepath.Split(argument(c, "--policy"))
	if got := filepath.Clean(dir); got != c.VolumeMounts[0].MountPath {
		t.Errorf("--policy is in %s, and the ConfigMap is mounted at %s", got, c.VolumeMounts[0].MountPath)
	}
	if !slices.Contains(policies, file) {
		t.Errorf("--policy names %s, which is in no component", file)
	}
}
