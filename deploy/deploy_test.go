package deploy_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ip-reaper/ip-reaper/policy"
)

const (
	name           = "ip-reaper"
	planName       = "ip-reaper-plan"
	calicoName     = "ip-reaper-calico"
	calicoPlanName = "ip-reaper-calico-plan"
	restoreName    = "ip-reaper-restore"
	namespace      = "ip-reaper"
)

// reads are the verbs that change nothing. The run holds no watch: it looks
// once.
var reads = []string{"get", "list"}

func TestManifestsAreOfKnownKindsAndFieldsOnly(t *testing.T) {
	objects := load(t)
	for _, want := range []string{
		"Namespace " + namespace,
		"ServiceAccount " + name,
		"ConfigMap ip-reaper-policy",
		"CronJob " + name,
		"ClusterRole " + name, "ClusterRoleBinding " + name, "Role " + name, "RoleBinding " + name,
		"ClusterRole " + planName, "ClusterRoleBinding " + planName, "Role " + planName, "RoleBinding " + planName,
		"ClusterRole " + calicoName, "ClusterRoleBinding " + calicoName,
		"ClusterRole " + calicoPlanName, "ClusterRoleBinding " + calicoPlanName,
		"ClusterRole " + restoreName, "ClusterRoleBinding " + restoreName,
	} {
		if _, ok := objects[want]; !ok {
			t.Errorf("there is no %s", want)
		}
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

func TestEverythingLivesInTheOneNamespace(t *testing.T) {
	for key, object := range load(t) {
		want := namespace
		switch object.(type) {
		case *corev1.Namespace, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
			want = ""
		}
		if got := object.GetNamespace(); got != want {
			t.Errorf("%s is in namespace %q, want %q", key, got, want)
		}
	}
}

func TestNamespaceEnforcesPodSecurity(t *testing.T) {
	labels := find[*corev1.Namespace](t, namespace).Labels
	for _, mode := range []string{"enforce", "audit", "warn"} {
		if got := labels["pod-security.kubernetes.io/"+mode]; got != "restricted" {
			t.Errorf("%s = %q, want restricted", mode, got)
		}
	}
}

func TestRolesHaveNoWildcard(t *testing.T) {
	for key, rules := range roles(t) {
		for _, rule := range rules {
			if len(rule.NonResourceURLs) > 0 {
				t.Errorf("%s: has non-resource URLs: %v", key, rule.NonResourceURLs)
			}
			for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames) {
				if strings.Contains(word, "*") {
					t.Errorf("%s: wildcard in %v", key, rule)
				}
			}
		}
	}
}

// The run writes only what backends, ledger, journal, lock and events write, and
// reads only what they and the census read.
func TestRolesHoldWhatIsUsedAndNothingElse(t *testing.T) {
	const group = "whereabouts.cni.cncf.io"
	for key, want := range map[string][]string{
		"ClusterRole " + name: append(definitions("ipamblocks.crd.projectcalico.org", "ipamblocks.projectcalico.org"),
			"/pods: get", "/pods: list", "apps/statefulsets: list", "/nodes: list",
			"events.k8s.io/events: create",
			"k8s.cni.cncf.io/network-attachment-definitions: list",
			group+"/ippools: get", group+"/ippools: list", group+"/ippools: patch",
			group+"/overlappingrangeipreservations: delete", group+"/overlappingrangeipreservations: get",
			group+"/overlappingrangeipreservations: list", group+"/overlappingrangeipreservations: patch",
		),
		"ClusterRole " + planName: append(definitions("ipamblocks.crd.projectcalico.org", "ipamblocks.projectcalico.org"),
			"/pods: list", "apps/statefulsets: list", "/nodes: list",
			"k8s.cni.cncf.io/network-attachment-definitions: list",
			group+"/ippools: list", group+"/overlappingrangeipreservations: list",
		),
		"ClusterRole " + calicoName: calico(
			"ipamblocks: get", "ipamblocks: list", "ipamblocks: update",
			"ipamhandles: delete", "ipamhandles: get", "ipamhandles: list", "ipamhandles: update",
		),
		"ClusterRole " + calicoPlanName: calico("ipamblocks: list", "ipamhandles: list"),
		"Role " + name: append(ledger("get", "update"),
			"/configmaps: create", "/configmaps: delete", "/configmaps: list",
			"coordination.k8s.io/leases: create", "coordination.k8s.io/leases/ip-reaper: get", "coordination.k8s.io/leases/ip-reaper: update",
		),
		"ClusterRole " + restoreName: {
			group + "/overlappingrangeipreservations: create",
			"crd.projectcalico.org/ipamhandles: create", "projectcalico.org/ipamhandles: create",
		},
		"Role " + planName: ledger("get"),
	} {
		got := permissions(roles(t)[key])
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s grants\n%s\nwant\n%s", key, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// A dry run changes nothing, by RBAC also where the program has a bug.
func TestPlanRolesOnlyRead(t *testing.T) {
	for _, key := range []string{"ClusterRole " + planName, "Role " + planName, "ClusterRole " + calicoPlanName} {
		for _, rule := range roles(t)[key] {
			for _, verb := range rule.Verbs {
				if !slices.Contains(reads, verb) {
					t.Errorf("%s may %s %v", key, verb, rule.Resources)
				}
			}
		}
	}
}

// Whoever may run may plan.
func TestPlanIsPartOfTheRun(t *testing.T) {
	for plan, run := range map[string]string{
		"ClusterRole " + planName:       "ClusterRole " + name,
		"Role " + planName:              "Role " + name,
		"ClusterRole " + calicoPlanName: "ClusterRole " + calicoName,
	} {
		may := permissions(roles(t)[run])
		for _, permission := range permissions(roles(t)[plan]) {
			if !slices.Contains(may, permission) {
				t.Errorf("%s lacks %q", run, permission)
			}
		}
	}
}

func TestBindingsBindTheServiceAccountToTheirRole(t *testing.T) {
	want := rbacv1.Subject{Kind: "ServiceAccount", Name: name, Namespace: namespace}
	find[*corev1.ServiceAccount](t, name)
	for _, role := range []string{name, planName, calicoName, calicoPlanName, restoreName} {
		cluster := find[*rbacv1.ClusterRoleBinding](t, role)
		if got, want := cluster.RoleRef, (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}); got != want {
			t.Errorf("ClusterRoleBinding %s refers to %v, want %v", role, got, want)
		}
		if !slices.Equal(cluster.Subjects, []rbacv1.Subject{want}) {
			t.Errorf("%s is bound to %v, want %v", role, cluster.Subjects, want)
		}
	}
	for _, role := range []string{name, planName} {
		local := find[*rbacv1.RoleBinding](t, role)
		if got, want := local.RoleRef, (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}); got != want {
			t.Errorf("RoleBinding %s refers to %v, want %v", role, got, want)
		}
		if !slices.Equal(local.Subjects, []rbacv1.Subject{want}) {
			t.Errorf("%s is bound to %v, want %v", role, local.Subjects, want)
		}
	}
}

func TestCronJobRunsOneAtATimeAndEnds(t *testing.T) {
	spec := find[*batchv1.CronJob](t, name).Spec
	job := spec.JobTemplate.Spec

	if spec.ConcurrencyPolicy != batchv1.ForbidConcurrent {
		t.Errorf("concurrencyPolicy = %q, want Forbid", spec.ConcurrencyPolicy)
	}
	// The controller looks about every 10 s, and gives up for good when it has
	// missed 100 starts and there is no deadline.
	if spec.StartingDeadlineSeconds == nil || *spec.StartingDeadlineSeconds < 10 {
		t.Errorf("startingDeadlineSeconds = %v, want at least 10", spec.StartingDeadlineSeconds)
	}
	if spec.TimeZone == nil || *spec.TimeZone == "" {
		t.Error("timeZone is not set")
	}
	if job.BackoffLimit == nil || *job.BackoffLimit > 2 {
		t.Errorf("backoffLimit = %v, want at most 2", job.BackoffLimit)
	}
	if job.TTLSecondsAfterFinished == nil {
		t.Error("ttlSecondsAfterFinished is not set")
	}

	if job.ActiveDeadlineSeconds == nil {
		t.Fatal("activeDeadlineSeconds is not set")
	}
	deadline := time.Duration(*job.ActiveDeadlineSeconds) * time.Second
	timeout, err := time.ParseDuration(argument(container(t), "--timeout"))
	if err != nil {
		t.Fatal(err)
	}
	if deadline <= timeout {
		t.Errorf("the job is killed after %v, before the run's own --timeout of %v", deadline, timeout)
	}
	if every := interval(t, spec.Schedule); deadline >= every {
		t.Errorf("the job may last %v, longer than the interval of %v", deadline, every)
	}
}

func TestJobDoesNotRetryWhatCannotHelp(t *testing.T) {
	job := find[*batchv1.CronJob](t, name).Spec.JobTemplate.Spec

	// The API refuses a podFailurePolicy with any other restart policy.
	if got := job.Template.Spec.RestartPolicy; got != corev1.RestartPolicyNever {
		t.Errorf("restartPolicy = %q, want Never", got)
	}
	if job.PodFailurePolicy == nil {
		t.Fatal("podFailurePolicy is not set")
	}
	var disruption, codes bool
	for _, rule := range job.PodFailurePolicy.Rules {
		for _, condition := range rule.OnPodConditions {
			if condition.Type == corev1.DisruptionTarget && rule.Action == batchv1.PodFailurePolicyActionIgnore {
				disruption = true
			}
		}
		if on := rule.OnExitCodes; on != nil && rule.Action == batchv1.PodFailurePolicyActionFailJob {
			codes = on.ContainerName != nil && *on.ContainerName == container(t).Name &&
				on.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn &&
				slices.Equal(on.Values, []int32{2, 4, 5})
		}
	}
	if !disruption {
		t.Error("a disruption counts as a failure")
	}
	if !codes {
		t.Error("exit codes 2, 4 and 5 of the container do not fail the job at once")
	}
}

func TestPodIsRestricted(t *testing.T) {
	pod := find[*batchv1.CronJob](t, name).Spec.JobTemplate.Spec.Template.Spec

	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("the pod shares a namespace of its host")
	}
	if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 {
		t.Errorf("%d containers and %d init containers, want one", len(pod.Containers), len(pod.InitContainers))
	}
	for _, volume := range pod.Volumes {
		if volume.ConfigMap == nil {
			t.Errorf("volume %s is not a ConfigMap", volume.Name)
		}
	}

	if s := pod.SecurityContext; s == nil {
		t.Error("the pod has no security context")
	} else {
		if s.RunAsNonRoot == nil || !*s.RunAsNonRoot {
			t.Error("runAsNonRoot is not set")
		}
		if s.RunAsUser == nil || *s.RunAsUser == 0 {
			t.Error("runAsUser is not set or root")
		}
		if s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Error("seccompProfile is not RuntimeDefault")
		}
	}
	if s := container(t).SecurityContext; s == nil {
		t.Error("the container has no security context")
	} else {
		if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
			t.Error("allowPrivilegeEscalation is not false")
		}
		if s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Error("readOnlyRootFilesystem is not set")
		}
		if s.Privileged != nil && *s.Privileged {
			t.Error("privileged")
		}
		if c := s.Capabilities; c == nil || !slices.Equal(c.Drop, []corev1.Capability{"ALL"}) || len(c.Add) > 0 {
			t.Errorf("capabilities = %v, want ALL dropped", c)
		}
	}
}

func TestOnlyThePodHoldsAToken(t *testing.T) {
	account := find[*corev1.ServiceAccount](t, name)
	if mount := account.AutomountServiceAccountToken; mount == nil || *mount {
		t.Error("every pod of the service account gets a token")
	}
	pod := find[*batchv1.CronJob](t, name).Spec.JobTemplate.Spec.Template.Spec
	if pod.ServiceAccountName != account.Name {
		t.Errorf("serviceAccountName = %q, want %q", pod.ServiceAccountName, account.Name)
	}
	if mount := pod.AutomountServiceAccountToken; mount == nil || !*mount {
		t.Error("the pod gets no token")
	}
}

func TestContainerSaysWhatItIsAndWhatItDid(t *testing.T) {
	c := container(t)

	image := c.Image[strings.LastIndex(c.Image, "/")+1:]
	if _, tag, ok := strings.Cut(image, ":"); !ok || tag == "" || tag == "latest" {
		t.Errorf("image %s names no version", c.Image)
	}
	if c.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		t.Errorf("terminationMessagePolicy = %q", c.TerminationMessagePolicy)
	}
	for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if request := c.Resources.Requests[resource]; request.IsZero() {
			t.Errorf("no request for %s", resource)
		}
	}
	if c.Resources.Limits.Memory().IsZero() {
		t.Error("no limit for memory")
	}
}

// Installing changes nothing: the policy that ships is a dry run.
func TestShippedPolicyIsADryRun(t *testing.T) {
	pod := find[*batchv1.CronJob](t, name).Spec.JobTemplate.Spec.Template.Spec
	c := container(t)
	if len(pod.Volumes) != 1 || len(c.VolumeMounts) != 1 || c.VolumeMounts[0].Name != pod.Volumes[0].Name {
		t.Fatalf("want one volume, mounted: %v, %v", pod.Volumes, c.VolumeMounts)
	}
	dir, file := filepath.Split(argument(c, "--policy"))
	if got := filepath.Clean(dir); got != c.VolumeMounts[0].MountPath {
		t.Errorf("--policy is in %s, the ConfigMap is at %s", got, c.VolumeMounts[0].MountPath)
	}
	data, ok := find[*corev1.ConfigMap](t, pod.Volumes[0].ConfigMap.Name).Data[file]
	if !ok {
		t.Fatalf("the ConfigMap has no %s", file)
	}

	p, err := policy.Load([]byte(data), []string{"whereabouts", "overlapping"})
	if err != nil {
		t.Fatalf("the shipped policy does not load: %v", err)
	}
	if p.DryRun == nil || !*p.DryRun {
		t.Error("the shipped policy releases")
	}
}
