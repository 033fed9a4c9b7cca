package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// daemonSet returns the pod template of the DaemonSet.
func daemonSet(t *testing.T) corev1.PodTemplateSpec {
	t.Helper()
	return find[*appsv1.DaemonSet](t, folders(t, "components/node"), "ip-reaper-node").Spec.Template
}

// The pod is root on its node by the socket of the runtime, so it gets no more than that:
// no capability, and no other folder.
func TestNodePodHasOnlyItsFoldersAndItsUser(t *testing.T) {
	pod := daemonSet(t).Spec
	if end := pod.TerminationGracePeriodSeconds; end == nil || *end != 60 {
		t.Error("the pod does not have 60 s to end")
	}
	if pod.HostPID || pod.HostIPC || len(pod.Containers) != 1 || len(pod.InitContainers) > 0 {
		t.Errorf("hostPID %t, hostIPC %t, %d containers, %d init containers", pod.HostPID, pod.HostIPC, len(pod.Containers), len(pod.InitContainers))
	}
	if s := pod.SecurityContext; s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || *s.RunAsUser != 0 {
		t.Errorf("the security context is %v", s)
	}
	c := pod.Containers[0]
	want := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if diff := cmp.Diff(want, c.SecurityContext); diff != "" {
		t.Errorf("security context of the container (-want +got):\n%s", diff)
	}
	got := make(map[string]string)
	for _, mount := range c.VolumeMounts {
		if !mount.ReadOnly {
			got[mount.MountPath] = "written "
		}
		if p := mount.MountPropagation; p != nil && *p == corev1.MountPropagationHostToContainer {
			got[mount.MountPath] += "follows" // what the node mounts later, such as a tmpfs with leases
		} else {
			got[mount.MountPath] += ""
		}
		volume := pod.Volumes[slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })]
		if volume.HostPath != nil && volume.HostPath.Path != mount.MountPath {
			t.Errorf("%s of the node is at %s", volume.HostPath.Path, mount.MountPath)
		}
	}
	if diff := cmp.Diff(map[string]string{
		"/etc/cni/net.d": "", "/run/containerd": "follows", "/var/run/netns": "follows", "/run/flannel": "", "/etc/ip-reaper": "",
		"/var/lib/cni": "written follows", "/var/lib/ip-reaper": "written ",
	}, got); diff != "" {
		t.Errorf("folders, how they are mounted (-want +got):\n%s", diff)
	}
}

// By its own UID, the program knows a container runtime that is not its pod's.
func TestNodePodKnowsItself(t *testing.T) {
	want := map[string]string{"NODE_NAME": "spec.nodeName", "POD_NAME": "metadata.name", "POD_UID": "metadata.uid"}
	got := make(map[string]string)
	for _, variable := range daemonSet(t).Spec.Containers[0].Env {
		if variable.ValueFrom != nil {
			got[variable.Name] = variable.ValueFrom.FieldRef.FieldPath
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables, and fields of the pod (-want +got):\n%s", diff)
	}
}

// A pod that frees addresses can start where there is none, and on every node that is one:
// also on a full one, and on none of those that a provider makes up.
func TestNodePodStartsOnEveryNodeWithoutAnAddress(t *testing.T) {
	pod := daemonSet(t).Spec
	quota := find[*corev1.ResourceQuota](t, folders(t, "components/node"), "ip-reaper-node").Spec
	allowed := quota.ScopeSelector.MatchExpressions[0]
	if pod.PriorityClassName != "system-node-critical" || allowed.ScopeName != corev1.ResourceQuotaScopePriorityClass || !slices.Contains(allowed.Values, pod.PriorityClassName) {
		t.Errorf("the priority class is %q, and that of %v is allowed", pod.PriorityClassName, allowed)
	}
	on := labels.SelectorFromSet(pod.NodeSelector)
	for _, e := range pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions {
		also, err := labels.NewRequirement(e.Key, selection.Operator(strings.ToLower(string(e.Operator))), e.Values)
		if err != nil {
			t.Fatal(err)
		}
		on = on.Add(*also)
	}
	for _, tt := range []struct {
		label, value string
		want         bool
	}{
		{"kubernetes.io/hostname", "worker-2", true},
		{"type", "gpu", true},
		{"eks.amazonaws.com/compute-type", "auto", true}, // a machine
		{"kubernetes.io/os", "windows", false},
		{"type", "virtual-kubelet", false},
		{"eks.amazonaws.com/compute-type", "fargate", false},
	} {
		node := labels.Set{"kubernetes.io/os": "linux"}
		node[tt.label] = tt.value
		if got := on.Matches(node); got != tt.want {
			t.Errorf("it runs on a node with %s=%s: %t", tt.label, tt.value, got)
		}
	}
	if !pod.HostNetwork {
		t.Error("the pod waits for an address")
	}
	if diff := cmp.Diff([]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, pod.Tolerations); diff != "" {
		t.Errorf("tolerations (-want +got):\n%s", diff)
	}
}

// Without components/node-api-server, a stolen pod has no token. With it, the account may
// list pods, and nothing else.
func TestNodeAccountMayListPodsAtMost(t *testing.T) {
	objects := folders(t, "components/node")
	account := find[*corev1.ServiceAccount](t, objects, "ip-reaper-node")
	pod := daemonSet(t).Spec
	if *account.AutomountServiceAccountToken || *pod.AutomountServiceAccountToken || pod.ServiceAccountName != account.Name {
		t.Errorf("the pod of the account %s gets a token", pod.ServiceAccountName)
	}
	if got := roles(objects); len(got) > 0 {
		t.Errorf("there are roles: %v", got)
	}
	granted := folders(t, "components/node-api-server")
	if diff := cmp.Diff([]string{"/pods: list"}, permissions(find[*rbacv1.ClusterRole](t, granted, "ip-reaper-node").Rules)); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
	binding := find[*rbacv1.ClusterRoleBinding](t, granted, "ip-reaper-node")
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}
	if diff := cmp.Diff(want, binding.Subjects); diff != "" || binding.RoleRef.Name != "ip-reaper-node" {
		t.Errorf("it binds %s to (-want +got):\n%s", binding.RoleRef.Name, diff)
	}
}

// The command that names the node, in the file and on the page, changes nothing else of the Job.
func TestNodeJobIsNamedItsNodeAndNothingElse(t *testing.T) {
	const file, command = "examples/node-job.yaml", `sed 's/nodeName: NODE/nodeName: worker-2/' deploy/examples/node-job.yaml | kubectl create -f -`
	for _, page := range []string{file, "../docs/node.md"} {
		if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), command) {
			t.Errorf("%s does not have %s: %v", page, command, err)
		}
	}
	expression := strings.Split(command, "'")[1]
	out, err := exec.CommandContext(t.Context(), "sed", expression, file).Output()
	if err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(named, out, 0o600); err != nil {
		t.Fatal(err)
	}
	want := read(t, file)
	want[0].(*batchv1.Job).Spec.Template.Spec.NodeName = "worker-2"
	if diff := cmp.Diff(want, read(t, named)); diff != "" {
		t.Errorf("the Job on worker-2 (-want +got):\n%s", diff)
	}
}

// The Job for an outage is one run of the DaemonSet's pod, on a node that the operator names.
func TestNodeJobIsThePodOfTheDaemonSet(t *testing.T) {
	objects := read(t, filepath.Join("examples", "node-job.yaml"))
	if len(objects) != 1 {
		t.Fatalf("%d objects, want one", len(objects))
	}
	job, ok := objects[0].(*batchv1.Job)
	if !ok {
		t.Fatalf("it is %s", kind(objects[0]))
	}
	got, want := job.Spec.Template.Spec, daemonSet(t).Spec
	if got.NodeName != "NODE" || got.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("nodeName %q, restartPolicy %q", got.NodeName, got.RestartPolicy)
	}
	got.NodeName, got.RestartPolicy = "", ""
	want.NodeSelector, want.Affinity = nil, nil // for a scheduler
	if args := got.Containers[0].Args; args[0] != "node" || slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--every") }) {
		t.Errorf("arguments %v, want one run", args)
	}
	got.Containers[0].Args, want.Containers[0].Args = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pod (-DaemonSet +Job):\n%s", diff)
	}
}
