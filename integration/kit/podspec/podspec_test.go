package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// good is a pod without a violation.
func good() corev1.PodSpec {
	resources := corev1.ResourceList{
		corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("1Gi"),
	}
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true)},
		Volumes:         []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}}},
		Containers: []corev1.Container{{
			Name:            "c",
			Resources:       corev1.ResourceRequirements{Requests: resources, Limits: resources},
			SecurityContext: &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)},
			VolumeMounts:    []corev1.VolumeMount{{Name: "v", MountPath: "/v", ReadOnly: true}},
		}},
	}
}

func TestEachRuleFindsItsViolation(t *testing.T) {
	type sources = corev1.VolumeSource
	volume := func(source sources) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Volumes[0].VolumeSource = source }
	}
	unconfined := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	for _, tt := range []struct {
		name      string
		change    func(*corev1.PodSpec)
		openShift string
		own       string
	}{
		{"nothing", func(*corev1.PodSpec) {}, "", ""},
		{"no contexts", func(s *corev1.PodSpec) { s.SecurityContext, s.Containers[0].SecurityContext = nil, nil }, "",
			"runAsNonRoot is not set"},
		{"host network", func(s *corev1.PodSpec) { s.HostNetwork = true }, "it shares a namespace of its host", ""},
		{"host port", func(s *corev1.PodSpec) { s.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }, "c has a port of its host", ""},
		{"user of the image", func(s *corev1.PodSpec) { s.SecurityContext.RunAsUser = new(int64(65532)) }, "runAsUser of c is not in the range", ""},
		{"user of the range", func(s *corev1.PodSpec) { s.SecurityContext.RunAsUser = &Namespace.Last }, "", ""},
		{"user of a container", func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.RunAsUser = new(int64(1)) }, "runAsUser of c is not in the range", ""},
		{"fsGroup", func(s *corev1.PodSpec) { s.SecurityContext.FSGroup = new(int64(65532)) }, "fsGroup is not the first ID of the range", ""},
		{"SELinux", func(s *corev1.PodSpec) { s.SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{} }, "seLinuxOptions are set", ""},
		{"SELinux of a container", func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{} },
			"seLinuxOptions of c are set", ""},
		{"seccomp", func(s *corev1.PodSpec) { s.SecurityContext.SeccompProfile = unconfined }, "the seccomp profile of the pod is not RuntimeDefault", ""},
		{"seccomp of a container", func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.SeccompProfile = unconfined },
			"the seccomp profile of c is not RuntimeDefault", ""},
		{"sysctl", func(s *corev1.PodSpec) { s.SecurityContext.Sysctls = []corev1.Sysctl{{}} }, "it has sysctls", ""},
		{"privileged", func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Privileged = new(true) }, "c is privileged", ""},
		{"escalation", func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = new(true) }, "c allows privilege escalation", ""},
		{"capability", func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}}
		}, "c adds the capability NET_ADMIN", ""},
		{"host path", volume(sources{HostPath: &corev1.HostPathVolumeSource{}}), "volume v is of the kind HostPath", "volume v can be written"},
		{"empty dir", volume(sources{EmptyDir: &corev1.EmptyDirVolumeSource{}}), "", "volume v can be written"},
		{"writable root", func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.ReadOnlyRootFilesystem = nil }, "", "c can write its root file system"},
		{"writable mount", func(s *corev1.PodSpec) { s.Containers[0].VolumeMounts[0].ReadOnly = false }, "", "c can write /v"},
		{"init container", func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{*s.Containers[0].DeepCopy()}
			s.InitContainers[0].VolumeMounts[0].ReadOnly = false
		}, "", "c can write /v"},
		{"no limit", func(s *corev1.PodSpec) { s.Containers[0].Resources.Limits = nil }, "", "c has no request and limit of memory"},
		{"request above the limit", func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = s.Containers[0].Resources.Limits.DeepCopy()
			s.Containers[0].Resources.Limits[corev1.ResourceEphemeralStorage] = resource.MustParse("1Mi")
		}, "", "c has no request and limit of ephemeral-storage"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := good()
			tt.change(&spec)
			for rules, pair := range map[string]struct {
				want string
				got  []string
			}{"restricted-v2": {tt.openShift, RestrictedV2(spec, Namespace)}, "own": {tt.own, Own(spec)}} {
				first := ""
				if len(pair.got) > 0 {
					first = pair.got[0]
				}
				if diff := cmp.Diff(pair.want, first); diff != "" {
					t.Errorf("%s (-want +got):\n%s", rules, diff)
				}
			}
		})
	}
}
