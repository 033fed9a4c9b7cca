package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FailSandbox writes the event by which the kubelet says three times that a pod gets no sandbox.
func (c *Cluster) FailSandbox(ctx context.Context, pod *corev1.Pod, message string) error {
	now := time.Now()
	_, err := c.Kube.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod.Name + "."},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Type:           corev1.EventTypeWarning,
		Reason:         "FailedCreatePodSandBox",
		Message:        message,
		FirstTimestamp: metav1.NewTime(now.Add(-5 * time.Minute)),
		LastTimestamp:  metav1.NewTime(now.Add(-time.Minute)),
		Count:          3,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create an event of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
