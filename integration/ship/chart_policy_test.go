package ship_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// everyField is a policy with values that a template may spoil: nothing, and much.
const everyField = "policy:\n" + everySetting + everyBackend

const (
	everySetting = `
  gracePeriod: 0
  minAge: 1h30m
  namespaces: {include: ["*"], exclude: ["kube-*"]}
  rules: [{match: {namespaces: ["yes"], pods: ["*-0"]}, gracePeriod: 24h, restored: release}, {match: {backends: [calico]}, hold: true}]
  evidence: {annotations: own}
  pods: {finished: release, stuck: release, superseded: hold, unnamed: hold}
  nodes: {unreachable: release, foreign: release, unknown: release}
  limits: {maxReleases: 10000000, maxFraction: 0.000001, maxPodDrop: 1, minEntries: 0}
  protection: {statefulSets: ignore}
  journal: {keep: 100, keepFor: 0, restoreHold: 0}
`
	everyBackend = "backends: {whereabouts: {enabled: true, unknownFields: ignore}, calico: {datastore: kubernetes}}\n"
)

// The templates change no value of a policy, such as a zero or a large number. mode is a flag of the
// CronJob, so dryRun is for who wants to stop it.
func TestPolicyArrivesAsItWasGiven(t *testing.T) {
	got := loadPolicies(t, theRelease.objects(t, everyField)["ConfigMap ip-reaper/ip-reaper-policy"])["policy.yaml"]
	given := header + strings.ReplaceAll(everySetting, "\n  ", "\n") + "dryRun: false\n" + everyBackend
	want, err := policy.Load([]byte(given), plugin.Known(backends.All()))
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
}

// cronJob returns the rendered CronJob, of known fields only.
func cronJob(t *testing.T, text string) batchv1.CronJob {
	t.Helper()
	return convert[batchv1.CronJob](t, theRelease.objects(t, text)["CronJob ip-reaper/ip-reaper"])
}

// Each value for the pods has its effect.
func TestValuesArriveInThePod(t *testing.T) {
	const text = `
image: {pullPolicy: Always}
imagePullSecrets: [{name: registry}]
suspend: true
concurrencyPolicy: Forbid
ttlSecondsAfterFinished: 10000000
activeDeadlineSeconds: 10000000
resources: {limits: {memory: 1Gi}}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {}}
topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]
priorityClassName: system-cluster-critical
dnsPolicy: Default
commonLabels: {team: all, tier: infra, app.kubernetes.io/instance: not-this}
podLabels: {team: net, app.kubernetes.io/name: not-this}
podAnnotations: {a: "1"}
metrics: {pushURLSecret: {name: gateway}}
extraEnv: [{name: IP_REAPER_VERBOSE, value: "true"}]
extraVolumes: [{name: more, emptyDir: {}}]
extraVolumeMounts: [{name: more, mountPath: /more}]
`
	job := cronJob(t, text)
	pod := job.Spec.JobTemplate.Spec.Template
	container := pod.Spec.Containers[0]
	for _, tt := range []struct {
		field     string
		got, want any
	}{
		{"imagePullPolicy", container.ImagePullPolicy, corev1.PullAlways},
		{"imagePullSecrets", pod.Spec.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "registry"}}},
		{"suspend", *job.Spec.Suspend, true},
		{"concurrencyPolicy", job.Spec.ConcurrencyPolicy, batchv1.ForbidConcurrent},
		{"ttlSecondsAfterFinished", *job.Spec.JobTemplate.Spec.TTLSecondsAfterFinished, int32(10_000_000)},
		{"activeDeadlineSeconds", *job.Spec.JobTemplate.Spec.ActiveDeadlineSeconds, int64(10_000_000)},
		{"memory", container.Resources.Limits.Memory().String(), "1Gi"},
		{"nodeSelector", pod.Spec.NodeSelector, map[string]string{"kubernetes.io/os": "linux"}},
		{"tolerations", pod.Spec.Tolerations, []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}},
		{"affinity", pod.Spec.Affinity, &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}},
		{"topologySpreadConstraints", pod.Spec.TopologySpreadConstraints, []corev1.TopologySpreadConstraint{
			{TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway},
		}},
		{"dnsPolicy", pod.Spec.DNSPolicy, corev1.DNSDefault},
		{"priorityClassName", pod.Spec.PriorityClassName, "system-cluster-critical"},
		{"labels", pod.Labels, map[string]string{
			"team": "net", "tier": "infra", "app.kubernetes.io/name": chartName, "app.kubernetes.io/instance": chartName,
		}},
		{"labels of the object", job.Labels["team"] + job.Labels["tier"] + job.Labels["app.kubernetes.io/instance"], "allinfra" + chartName},
		{"the last volume", pod.Spec.Volumes[len(pod.Spec.Volumes)-1], corev1.Volume{
			Name: "more", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		}},
		{"the last mount", container.VolumeMounts[len(container.VolumeMounts)-1], corev1.VolumeMount{Name: "more", MountPath: "/more"}},
		{"annotations", pod.Annotations, map[string]string{"a": "1"}},
		{"the end of env", container.Env[len(container.Env)-2:], []corev1.EnvVar{
			{Name: "IP_REAPER_PUSH_URL", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "gateway"}, Key: "url",
			}}},
			{Name: "IP_REAPER_VERBOSE", Value: "true"},
		}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.field, diff)
		}
	}
}

// The pods of an outage need the network of their node only where addresses may be all gone. Without it, their
// namespace admits what that of the CronJob may.
func TestOutageJobsDoWithoutTheHostNetwork(t *testing.T) {
	objects := theRelease.objects(t, "outage: {enabled: true, hostNetwork: false}\ntolerations: [{key: a, operator: Exists}]")
	namespace := objects["Namespace /ip-reaper-outage"]
	level := namespace.GetLabels()["pod-security.kubernetes.io/enforce"]
	pod := convert[batchv1.CronJob](t, objects["CronJob ip-reaper-outage/ip-reaper-outage-now"]).Spec.JobTemplate.Spec.Template.Spec
	if level != "restricted" || pod.HostNetwork || len(pod.Tolerations) != 4 || pod.Tolerations[0].Key != "a" {
		t.Errorf("the namespace is %s, and the pod %+v", level, pod)
	}
}

// Where etcd wants no TLS there is no Secret to wait for.
func TestEtcdWithoutTLSNeedsNoSecret(t *testing.T) {
	const text = `
backends: {calico: {datastore: etcdv3, etcd: {endpoints: ["http://etcd:2379"], secretName: ""}}}
`
	pod := cronJob(t, text).Spec.JobTemplate.Spec.Template.Spec
	if len(pod.Volumes) != 1 || pod.Volumes[0].ConfigMap == nil {
		t.Errorf("volumes = %v, want the policy alone", pod.Volumes)
	}
	var names []string
	for _, variable := range pod.Containers[0].Env {
		names = append(names, variable.Name)
	}
	if diff := cmp.Diff([]string{"ETCD_ENDPOINTS", "DATASTORE_TYPE", "NAMESPACE", "POD_NAME", "GOMEMLIMIT"}, names); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}
