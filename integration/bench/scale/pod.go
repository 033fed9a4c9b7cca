package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// managed is what the API server records about the fields of a pod that kubelet, Multus and the
// ReplicaSet controller wrote: enough bytes to make a pod 5 KB, the usual size in the stores of
// large clusters.
var managed = func() []byte {
	text := `{"f:status":{"f:conditions":{".":{}`
	for i := range 42 {
		text += fmt.Sprintf(`,"k:{\"type\":\"Condition%02d\"}":{".":{},"f:status":{}}`, i)
	}
	return []byte(text + "}}}")
}()

// podRecord returns the running pod of an entry, with its primary address and the entry's.
func podRecord(e entry) (record, error) {
	attached := cluster.Attached(network, "net1", e.ip().String())
	attached.MAC = fmt.Sprintf("0a:58:0a:%02x:%02x:%02x", byte(e>>16), byte(e>>8), byte(e))
	return runningRecord(e, e.node(), cluster.PodIPs(primary(e).String()), cluster.Networks(attached),
		cluster.Annotation("k8s.v1.cni.cncf.io/networks", network),
		func(pod *corev1.Pod) {
			pod.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Subresource: "status",
				Time: &metav1.Time{Time: created}, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(managed)),
			}}
		})
}

// runningRecord returns the pod of an entry, running on a node. Options give it addresses.
func runningRecord(e entry, node string, options ...cluster.PodOption) (record, error) {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.namespace(), Name: e.pod(), GenerateName: "frontend-7d9c5b8f6-", UID: types.UID(uid(3, int(e))),
			CreationTimestamp: metav1.NewTime(created),
			Labels:            map[string]string{"app": "frontend", "pod-template-hash": "7d9c5b8f6"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "frontend-7d9c5b8f6", UID: "5d1f7c52-7a55-4f2c-a1a1-6d2f5e1c0b7a", Controller: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
			SchedulerName: corev1.DefaultSchedulerName, TerminationGracePeriodSeconds: new(int64(30)),
			SecurityContext: &corev1.PodSecurityContext{}, ServiceAccountName: "frontend",
			Containers: []corev1.Container{container("main"), container("sidecar")},
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "frontend"}},
			}}},
		},
		Status: status(e),
	}
	for _, option := range options {
		option(pod)
	}
	pod.Status.PodIP = pod.Status.PodIPs[0].IP
	value, err := builtin(pod)
	if err != nil {
		return record{}, fmt.Errorf("encode pod %s: %w", e.podRef(), err)
	}
	return record{"/registry/pods/" + e.podRef(), value}, nil
}

// container returns a container of a pod.
func container(name string) corev1.Container {
	probe := &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080), Scheme: "HTTP"}},
		TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
	}
	c := corev1.Container{
		Name: name, Image: "registry.example/" + name + ":v1.2.3", ImagePullPolicy: corev1.PullIfNotPresent,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
		}},
		LivenessProbe: probe, ReadinessProbe: probe,
		VolumeMounts:           []corev1.VolumeMount{{Name: "config", MountPath: "/etc/frontend", ReadOnly: true}},
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	for _, variable := range []string{"DATABASE_URL", "CACHE_URL", "LOG_LEVEL", "REGION"} {
		c.Env = append(c.Env, corev1.EnvVar{Name: variable, Value: "value-of-" + variable})
	}
	return c
}

// status returns the status of a running pod, without addresses.
func status(e entry) corev1.PodStatus {
	s := corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "192.0.2.1", StartTime: &metav1.Time{Time: created}, QOSClass: corev1.PodQOSBurstable}
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{
			Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(created),
		})
	}
	for _, name := range []string{"main", "sidecar"} {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Ready: true, Started: new(true), Image: "registry.example/" + name + ":v1.2.3",
			ImageID: "registry.example/" + name + "@sha256:" + e.sandbox(), ContainerID: "containerd://" + e.sandbox(),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(created)}},
		})
	}
	return s
}

// nodeRecord returns a ready node.
func nodeRecord(n int) (record, error) {
	value, err := builtin(&corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: nodeName(n), UID: types.UID(uid(4, n)), CreationTimestamp: metav1.NewTime(created),
			Labels: map[string]string{corev1.LabelHostname: nodeName(n), corev1.LabelOSStable: "linux"},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: metav1.NewTime(created),
		}}},
	})
	return record{"/registry/minions/" + nodeName(n), value}, err
}

// namespaceRecord returns a namespace of pods.
func namespaceRecord(n int) (record, error) {
	value, err := builtin(&corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: tenant(n), UID: types.UID(uid(5, n)), CreationTimestamp: metav1.NewTime(created)},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	})
	return record{"/registry/namespaces/" + tenant(n), value}, err
}
