package ship_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// violations are the rules that a pod breaks.
type violations []string

func (v *violations) check(ok bool, format string, args ...any) {
	if !ok {
		*v = append(*v, fmt.Sprintf(format, args...))
	}
}

// firstUID and lastUID are what OpenShift may allot to a namespace, in its annotation
// openshift.io/sa.scc.uid-range.
const firstUID, lastUID = 1000660000, 1000669999

// restrictedV2 returns how a pod that Pod Security restricted admits violates the
// SecurityContextConstraints restricted-v2, which OpenShift applies to every account. A field
// that is not set is filled in by OpenShift: the user and the fsGroup from the range of the
// namespace, and its SELinux labels.
//
// The rules are those of bindata/bootkube/scc-manifests in
// github.com/openshift/cluster-kube-apiserver-operator.
func restrictedV2(spec corev1.PodSpec) []string {
	var v violations
	pod := spec.SecurityContext
	v.check(pod.FSGroup == nil || *pod.FSGroup == firstUID, "fsGroup is not the first ID of the range") // MustRunAs
	v.check(pod.SELinuxOptions == nil, "seLinuxOptions are set")
	v.check(pod.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, "the seccomp profile is not RuntimeDefault")
	v.check(len(pod.Sysctls) == 0, "it has sysctls")
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		user := pod.RunAsUser
		if c.SecurityContext.RunAsUser != nil {
			user = c.SecurityContext.RunAsUser
		}
		v.check(user == nil || firstUID <= *user && *user <= lastUID, "runAsUser of %s is not in the range", c.Name)
		v.check(c.SecurityContext.SELinuxOptions == nil, "seLinuxOptions of %s are set", c.Name)
		v.check(c.SecurityContext.SeccompProfile == nil, "%s has a seccomp profile of its own", c.Name)
	}
	return v
}

// own returns how a pod violates the rules of this project: it cannot write into its root
// file system or a volume, and takes no more of its node than it says.
func own(spec corev1.PodSpec) []string {
	var v violations
	for _, volume := range spec.Volumes {
		v.check(volume.ConfigMap != nil || volume.Secret != nil || volume.Projected != nil, "volume %s can be written", volume.Name)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		readOnly := c.SecurityContext.ReadOnlyRootFilesystem
		v.check(readOnly != nil && *readOnly, "%s can write its root file system", c.Name)
		for _, mount := range c.VolumeMounts {
			v.check(mount.ReadOnly, "%s can write %s", c.Name, mount.MountPath)
		}
		v.check(c.Resources.Limits.Cpu().IsZero(), "%s has a limit of CPU, and its second looks would expire", c.Name)
		for _, resource := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			request, limit := c.Resources.Requests[resource], c.Resources.Limits[resource]
			v.check(!request.IsZero() && !limit.IsZero() && request.Cmp(limit) <= 0, "%s has no request and limit of %s", c.Name, resource)
		}
	}
	return v
}
