package chart_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A constraints is a SecurityContextConstraints of OpenShift, as far as it is used here.
type constraints struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	AllowHostDirVolumePlugin bool `json:"allowHostDirVolumePlugin"`
	AllowHostIPC             bool `json:"allowHostIPC"`
	AllowHostNetwork         bool `json:"allowHostNetwork"`
	AllowHostPID             bool `json:"allowHostPID"`
	AllowHostPorts           bool `json:"allowHostPorts"`
	AllowPrivilegeEscalation bool `json:"allowPrivilegeEscalation"`
	AllowPrivilegedContainer bool `json:"allowPrivilegedContainer"`
	ReadOnlyRootFilesystem   bool `json:"readOnlyRootFilesystem"`

	AllowedCapabilities      []corev1.Capability `json:"allowedCapabilities"`
	DefaultAddCapabilities   []corev1.Capability `json:"defaultAddCapabilities"`
	RequiredDropCapabilities []corev1.Capability `json:"requiredDropCapabilities"`

	RunAsUser          strategy `json:"runAsUser"`
	SELinuxContext     strategy `json:"seLinuxContext"`
	FSGroup            strategy `json:"fsGroup"`
	SupplementalGroups strategy `json:"supplementalGroups"`

	SeccompProfiles []string `json:"seccompProfiles"`
	Volumes         []string `json:"volumes"`
	Priority        *int32   `json:"priority"`
	Users           []string `json:"users"`
	Groups          []string `json:"groups"`
}

// A strategy says what a pod must run as.
type strategy struct {
	Type string `json:"type"`
	UID  *int64 `json:"uid,omitempty"`
}

// OpenShift allows the account of the DaemonSet what its pod has, and nothing else.
func TestOpenShiftAllowsWhatThePodOfTheDaemonSetHas(t *testing.T) {
	objects := home.objects(t, "node: {enabled: true, runtimeSocket: /run/crio/crio.sock, confDir: /etc/kubernetes/cni/net.d}", openShift)
	pod := convert[appsv1.DaemonSet](t, objects["DaemonSet ip-reaper-node/ip-reaper-node"]).Spec.Template.Spec
	namespace := objects["Namespace /ip-reaper-node"]
	if selector, set := namespace.GetAnnotations()["openshift.io/node-selector"]; !set || selector != "" {
		t.Errorf("the node selector of the namespace is %q, set %t: a default one of the cluster leaves out nodes", selector, set)
	}
	c := pod.Containers[0].SecurityContext
	if diff := cmp.Diff(&corev1.SELinuxOptions{Type: "spc_t"}, pod.SecurityContext.SELinuxOptions); diff != "" {
		t.Errorf("SELinux (-want +got):\n%s", diff)
	}
	got := convert[constraints](t, objects["SecurityContextConstraints /ip-reaper-node"])
	got.TypeMeta, got.ObjectMeta = metav1.TypeMeta{}, metav1.ObjectMeta{}
	want := constraints{
		AllowHostDirVolumePlugin: true, AllowHostNetwork: pod.HostNetwork, AllowHostIPC: pod.HostIPC, AllowHostPID: pod.HostPID,
		AllowPrivilegeEscalation: *c.AllowPrivilegeEscalation, ReadOnlyRootFilesystem: *c.ReadOnlyRootFilesystem,
		AllowedCapabilities: []corev1.Capability{}, DefaultAddCapabilities: []corev1.Capability{}, RequiredDropCapabilities: c.Capabilities.Drop,
		RunAsUser: strategy{"MustRunAs", pod.SecurityContext.RunAsUser}, SELinuxContext: strategy{Type: "RunAsAny"},
		FSGroup: strategy{Type: "RunAsAny"}, SupplementalGroups: strategy{Type: "RunAsAny"},
		SeccompProfiles: []string{"runtime/default"},                    // RuntimeDefault
		Volumes:         []string{"configMap", "hostPath", "projected"}, // projected: a token, with node.apiServer
		Users:           []string{"system:serviceaccount:ip-reaper-node:" + pod.ServiceAccountName}, Groups: []string{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("constraints (-want +got):\n%s", diff)
	}
}
