package ship_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// firstUID and lastUID are what OpenShift may allot to a namespace, in its annotation
// openshift.io/sa.scc.uid-range.
const firstUID, lastUID = 1000660000, 1000669999

// violations returns how a pod that Pod Security restricted admits violates the
// SecurityContextConstraints restricted-v2, which OpenShift applies to every account, or if it has the
// network of its node, hostnetwork-v2, which only allows that in addition, and ports. A field
// that is not set is filled in by OpenShift: the user and the fsGroup from the range of the
// namespace, and its SELinux labels. Then come the rules of this project: it cannot write into
// its root file system or a volume, and takes no more of its node than it says.
//
// The rules of OpenShift are those of bindata/bootkube/scc-manifests in
// github.com/openshift/cluster-kube-apiserver-operator.
func violations(spec corev1.PodSpec) (all []string) {
	check := func(ok bool, format string, args ...any) {
		if !ok {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	pod := spec.SecurityContext
	check(pod.FSGroup == nil || *pod.FSGroup == firstUID, "fsGroup is not the first ID of the range") // MustRunAs
	check(pod.SELinuxOptions == nil, "seLinuxOptions are set")
	check(pod.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, "the seccomp profile is not RuntimeDefault")
	check(len(pod.Sysctls) == 0, "it has sysctls")
	for _, volume := range spec.Volumes {
		check(volume.ConfigMap != nil || volume.Secret != nil || volume.Projected != nil, "volume %s can be written", volume.Name)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		user := pod.RunAsUser
		if c.SecurityContext.RunAsUser != nil {
			user = c.SecurityContext.RunAsUser
		}
		check(user == nil || firstUID <= *user && *user <= lastUID, "runAsUser of %s is not in the range", c.Name)
		check(c.SecurityContext.SELinuxOptions == nil, "seLinuxOptions of %s are set", c.Name)
		check(c.SecurityContext.SeccompProfile == nil, "%s has a seccomp profile of its own", c.Name)

		readOnly := c.SecurityContext.ReadOnlyRootFilesystem
		check(readOnly != nil && *readOnly, "%s can write its root file system", c.Name)
		for _, mount := range c.VolumeMounts {
			check(mount.ReadOnly, "%s can write %s", c.Name, mount.MountPath)
		}
		check(c.Resources.Limits.Cpu().IsZero(), "%s has a limit of CPU, and its second looks would expire", c.Name)
		for _, resource := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			request, limit := c.Resources.Requests[resource], c.Resources.Limits[resource]
			check(!request.IsZero() && !limit.IsZero() && request.Cmp(limit) <= 0, "%s has no request and limit of %s", c.Name, resource)
		}
	}
	return all
}
