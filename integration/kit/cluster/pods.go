package cluster

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultNode is where a pod without a node runs. It need not exist.
const DefaultNode = "worker-1"

// A PodOption changes the pod that CreatePod makes.
type PodOption func(*corev1.Pod)

// OnNode says where the pod runs.
func OnNode(node string) PodOption {
	return func(p *corev1.Pod) { p.Spec.NodeName = node }
}

// Phase says what the pod is doing. A Pending pod gets no address unless
// PodIPs gives it one.
func Phase(phase corev1.PodPhase) PodOption {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

// PodIPs sets the addresses of the pod's status, the primary one first.
func PodIPs(ips ...string) PodOption {
	return func(p *corev1.Pod) {
		p.Status.PodIPs = nil
		for _, ip := range ips {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
		}
	}
}

// Labels adds labels to the pod.
func Labels(labels map[string]string) PodOption {
	return func(p *corev1.Pod) {
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		maps.Copy(p.Labels, labels)
	}
}

// Annotation sets one annotation to a text, which need not be valid.
func Annotation(key, value string) PodOption {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

var podNumber atomic.Uint32

// freshIP returns an address in 10.244.0.0/16, a different one each time.
func freshIP() string {
	n := podNumber.Add(1)
	return fmt.Sprintf("10.244.%d.%d", n>>8&0xff, n&0xff)
}

// CreatePod creates a pod as it looks when scheduler, kubelet and Multus are done with it: bound to
// DefaultNode, Running, and with its own address from 10.244.0.0/16. Options, applied in order,
// change that.
func (c *Cluster) CreatePod(ctx context.Context, namespace, name string, opts ...PodOption) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName:   DefaultNode,
			Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/main:1"}},
		},
	}
	for _, opt := range opts {
		opt(pod)
	}
	status(pod)
	created, err := c.Kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create pod %s/%s: %w", namespace, name, err)
	}
	// Create ignores the status.
	created.Status = pod.Status
	created, err = c.Kube.CoreV1().Pods(namespace).UpdateStatus(ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("update status of pod %s/%s: %w", namespace, name, err)
	}
	return created, nil
}

// UpdatePod applies options to an existing pod: it writes its metadata, then its status. A pod that
// becomes Running gets an address if it has none.
func (c *Cluster) UpdatePod(ctx context.Context, namespace, name string, opts ...PodOption) error {
	pods := c.Kube.CoreV1().Pods(namespace)
	pod, err := pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get pod %s/%s: %w", namespace, name, err)
	}
	for _, opt := range opts {
		opt(pod)
	}
	status(pod)
	updated, err := pods.Update(ctx, pod, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update pod %s/%s: %w", namespace, name, err)
	}
	updated.Status = pod.Status
	if _, err := pods.UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update status of pod %s/%s: %w", namespace, name, err)
	}
	return nil
}

// status completes the pod's status with what follows from the options.
func status(pod *corev1.Pod) {
	if pod.Status.Phase == "" {
		pod.Status.Phase = corev1.PodRunning
	}
	if pod.Status.PodIPs == nil && pod.Status.Phase == corev1.PodRunning {
		PodIPs(freshIP())(pod)
	}
	if len(pod.Status.PodIPs) > 0 {
		pod.Status.PodIP = pod.Status.PodIPs[0].IP
	}
	main := corev1.ContainerStatus{Name: "main", Image: "registry.invalid/main:1"}
	switch pod.Status.Phase {
	case corev1.PodRunning:
		main.Ready = true
		main.State.Running = &corev1.ContainerStateRunning{}
	case corev1.PodPending:
		main.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	default: // no longer, or unknown
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{main}
}

// DeletePod removes a pod immediately, as kubectl delete --force does: no kubelet is involved and
// no CNI DEL happens. It is no error if the pod is gone.
func (c *Cluster) DeletePod(ctx context.Context, namespace, name string) error {
	err := c.Kube.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s/%s: %w", namespace, name, err)
	}
	return nil
}

// DeletePods removes every pod of the namespace immediately.
func (c *Cluster) DeletePods(ctx context.Context, namespace string) error {
	err := c.Kube.CoreV1().Pods(namespace).DeleteCollection(ctx,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("delete pods of %s: %w", namespace, err)
	}
	return nil
}
