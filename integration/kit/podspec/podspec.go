// Package podspec checks the specs of pods by rules that no part of the tests enforces:
// those of OpenShift, and those of this project.
package podspec

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A UIDRange is what OpenShift allots to a namespace, in its annotation
// openshift.io/sa.scc.uid-range.
type UIDRange struct{ First, Last int64 }

// Namespace is the range of a namespace, as an example.
var Namespace = UIDRange{1000660000, 1000669999}

// volumes are the sources that every version of restricted-v2 allows. Newer ones also
// allow csi and ephemeral.
var volumes = []string{"ConfigMap", "DownwardAPI", "EmptyDir", "PersistentVolumeClaim", "Projected", "Secret"}

// RestrictedV2 returns how a pod violates the SecurityContextConstraints restricted-v2,
// which OpenShift applies to every account. A field that is not set is filled in by
// OpenShift: the user and the fsGroup from the range, the SELinux labels of the namespace,
// the seccomp profile, the capabilities and allowPrivilegeEscalation.
//
// The rules are those of bindata/bootkube/scc-manifests in
// github.com/openshift/cluster-kube-apiserver-operator.
func RestrictedV2(spec corev1.PodSpec, ids UIDRange) (violations []string) {
	check := func(ok bool, format string, args ...any) {
		if !ok {
			violations = append(violations, fmt.Sprintf(format, args...))
		}
	}
	check(!spec.HostNetwork && !spec.HostPID && !spec.HostIPC, "it shares a namespace of its host")
	for _, v := range spec.Volumes {
		check(slices.Contains(volumes, source(v)), "volume %s is of the kind %s", v.Name, source(v))
	}
	pod := spec.SecurityContext
	if pod == nil {
		pod = &corev1.PodSecurityContext{}
	}
	check(pod.FSGroup == nil || *pod.FSGroup == ids.First, "fsGroup is not the first ID of the range") // MustRunAs
	check(pod.SELinuxOptions == nil, "seLinuxOptions are set")
	check(allowed(pod.SeccompProfile), "the seccomp profile of the pod is not RuntimeDefault")
	check(len(pod.Sysctls) == 0, "it has sysctls")
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		own := c.SecurityContext
		if own == nil {
			own = &corev1.SecurityContext{}
		}
		user := pod.RunAsUser
		if own.RunAsUser != nil {
			user = own.RunAsUser
		}
		check(user == nil || ids.First <= *user && *user <= ids.Last, "runAsUser of %s is not in the range", c.Name)
		check(own.SELinuxOptions == nil, "seLinuxOptions of %s are set", c.Name)
		check(allowed(own.SeccompProfile), "the seccomp profile of %s is not RuntimeDefault", c.Name)
		check(own.Privileged == nil || !*own.Privileged, "%s is privileged", c.Name)
		check(own.AllowPrivilegeEscalation == nil || !*own.AllowPrivilegeEscalation, "%s allows privilege escalation", c.Name)
		for _, port := range c.Ports {
			check(port.HostPort == 0, "%s has a port of its host", c.Name)
		}
		if own.Capabilities != nil {
			for _, added := range own.Capabilities.Add {
				check(added == "NET_BIND_SERVICE", "%s adds the capability %s", c.Name, added)
			}
		}
	}
	return violations
}

// allowed reports whether a seccomp profile is runtime/default or not set.
func allowed(profile *corev1.SeccompProfile) bool {
	return profile == nil || profile.Type == corev1.SeccompProfileTypeRuntimeDefault
}

// source returns the kind of a volume: the name of its only field that is set.
func source(v corev1.Volume) string {
	fields := reflect.ValueOf(v.VolumeSource)
	for i := range fields.NumField() {
		if !fields.Field(i).IsNil() {
			return fields.Type().Field(i).Name
		}
	}
	return "EmptyDir" // the API server's default
}

// Own returns how a pod violates the rules of this project: it needs no root, cannot write
// into its root file system or a volume, and takes no more of its node than it says.
func Own(spec corev1.PodSpec) (violations []string) {
	check := func(ok bool, format string, args ...any) {
		if !ok {
			violations = append(violations, fmt.Sprintf(format, args...))
		}
	}
	set := func(flag *bool) bool { return flag != nil && *flag }
	check(spec.SecurityContext != nil && set(spec.SecurityContext.RunAsNonRoot), "runAsNonRoot is not set")
	for _, v := range spec.Volumes {
		check(v.EmptyDir == nil && v.HostPath == nil && v.PersistentVolumeClaim == nil, "volume %s can be written", v.Name)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		check(c.SecurityContext != nil && set(c.SecurityContext.ReadOnlyRootFilesystem), "%s can write its root file system", c.Name)
		for _, mount := range c.VolumeMounts {
			check(mount.ReadOnly, "%s can write %s", c.Name, mount.MountPath)
		}
		check(c.Resources.Limits.Cpu().IsZero(), "%s has a limit of CPU, and its second looks would expire", c.Name)
		for _, resource := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			request, limit := c.Resources.Requests[resource], c.Resources.Limits[resource]
			check(!request.IsZero() && !limit.IsZero() && request.Cmp(limit) <= 0, "%s has no request and limit of %s", c.Name, resource)
		}
	}
	return violations
}
