package deploy_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPodIsRestricted(t *testing.T) {
	pod := cronJob(t).Spec.JobTemplate.Spec.Template.Spec

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
			t.Error("runAsUser is not set, or is root")
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
			t.Error("the container is privileged")
		}
		if c := s.Capabilities; c == nil || !slices.Equal(c.Drop, []corev1.Capability{"ALL"}) || len(c.Add) > 0 {
			t.Errorf("capabilities = %v, want ALL dropped", c)
		}
	}
}

func TestOnlyThePodHoldsAToken(t *testing.T) {
	account := find[*corev1.ServiceAccount](t, installation(t, "plan"), name)
	if mount := account.AutomountServiceAccountToken; mount == nil || *mount {
		t.Error("every pod of the service account gets a token")
	}
	pod := cronJob(t).Spec.JobTemplate.Spec.Template.Spec
	if pod.ServiceAccountName != account.Name {
		t.Errorf("serviceAccountName = %q, want %q", pod.ServiceAccountName, account.Name)
	}
	if mount := pod.AutomountServiceAccountToken; mount == nil || !*mount {
		t.Error("the pod gets no token")
	}
}

func TestContainerHasAVersionAndResources(t *testing.T) {
	c := container(t)

	image := c.Image[strings.LastIndex(c.Image, "/")+1:]
	if _, tag, ok := strings.Cut(image, ":"); !ok || tag == "" || tag == "latest" {
		t.Errorf("image %s names no version", c.Image)
	}
	if c.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		t.Errorf("terminationMessagePolicy = %q", c.TerminationMessagePolicy)
	}
	for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if request := c.Resources.Requests[resource]; request.IsZero() {
			t.Errorf("no request for %s", resource)
		}
		// A second look expires after 2 seconds, so the CPU has no limit.
		if limit := c.Resources.Limits[resource]; limit.IsZero() != (resource == corev1.ResourceCPU) {
			t.Errorf("the limit for %s is %s", resource, &limit)
		}
	}
}
