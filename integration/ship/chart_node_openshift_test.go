package ship_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// OpenShift allows the account of the DaemonSet what its pod has, and nothing else.
func TestOpenShiftAllowsWhatThePodOfTheDaemonSetHas(t *testing.T) {
	objects := theRelease.objects(t, "node: {enabled: true, runtimeSocket: /run/crio/crio.sock, confDir: /etc/kubernetes/cni/net.d}", openShift)
	pod := convert[appsv1.DaemonSet](t, objects["DaemonSet ip-reaper-node/ip-reaper-node"]).Spec.Template.Spec
	namespace := objects["Namespace /ip-reaper-node"]
	if selector, set := namespace.GetAnnotations()["openshift.io/node-selector"]; !set || selector != "" {
		t.Errorf("the node selector of the namespace is %q, set %t: a default one of the cluster leaves out nodes", selector, set)
	}
	if diff := cmp.Diff(&corev1.SELinuxOptions{Type: "spc_t"}, pod.SecurityContext.SELinuxOptions); diff != "" {
		t.Errorf("SELinux (-want +got):\n%s", diff)
	}
	got := objects["SecurityContextConstraints /ip-reaper-node"].Object
	for _, field := range []string{"apiVersion", "kind", "metadata"} {
		delete(got, field)
	}
	c := pod.Containers[0].SecurityContext
	runAsAny := map[string]any{"type": "RunAsAny"}
	want := map[string]any{
		"allowHostDirVolumePlugin": true,
		"allowHostNetwork":         pod.HostNetwork,
		"allowHostIPC":             pod.HostIPC,
		"allowHostPID":             pod.HostPID,
		"allowHostPorts":           false,
		"allowPrivilegeEscalation": *c.AllowPrivilegeEscalation,
		"allowPrivilegedContainer": false,
		"readOnlyRootFilesystem":   *c.ReadOnlyRootFilesystem,
		"allowedCapabilities":      []any{},
		"defaultAddCapabilities":   []any{},
		"requiredDropCapabilities": []any{string(c.Capabilities.Drop[0])},
		"runAsUser":                map[string]any{"type": "MustRunAs", "uid": float64(*pod.SecurityContext.RunAsUser)},
		"seLinuxContext":           runAsAny,
		"fsGroup":                  runAsAny,
		"supplementalGroups":       runAsAny,
		"seccompProfiles":          []any{"runtime/default"},                    // RuntimeDefault
		"volumes":                  []any{"configMap", "hostPath", "projected"}, // projected: a token, with node.apiServer
		"users":                    []any{"system:serviceaccount:ip-reaper-node:" + pod.ServiceAccountName},
		"groups":                   []any{},
		"priority":                 nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("constraints (-want +got):\n%s", diff)
	}
}
