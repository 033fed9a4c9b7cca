package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CreateNode creates a node, ready or not.
func (c *Cluster) CreateNode(ctx context.Context, name string, ready bool) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.Kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create node %s: %w", name, err)
	}
	return c.SetNodeReady(ctx, name, ready)
}

// SetNodeReady sets the node's Ready condition to true, or to unknown, as the node controller does
// when it does not hear from the kubelet.
func (c *Cluster) SetNodeReady(ctx context.Context, name string, ready bool) error {
	node, err := c.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get node %s: %w", name, err)
	}
	condition := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
	}
	if !ready {
		condition.Status, condition.Reason = corev1.ConditionUnknown, "NodeStatusUnknown"
	}
	node.Status.Conditions = []corev1.NodeCondition{condition}
	if _, err := c.Kube.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update status of node %s: %w", name, err)
	}
	return nil
}

// CreateNamespace creates the namespace unless it exists.
func (c *Cluster) CreateNamespace(ctx context.Context, name string) error {
	_, err := c.Kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}
