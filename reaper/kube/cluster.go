// Package kube is the Kubernetes side of a run: who is alive, what earlier runs
// remember, what can be undone, who else is running, and whom to tell.
package kube

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// pageSize is how many objects a list request asks for, as kubectl does.
const pageSize = 500

// Cluster answers from the API server, always by quorum reads: requests name no
// resourceVersion, and nothing is cached. It implements reaper.Cluster.
type Cluster struct {
	core Core
	apps appsv1client.StatefulSetsGetter
}

// Core is what is read of the core API group.
type Core interface {
	corev1client.PodsGetter
	corev1client.NodesGetter
}

// NewCluster returns the cluster behind the clients. The clientset of all API groups
// would do too, and make the program 15 MB larger.
func NewCluster(core Core, apps appsv1client.StatefulSetsGetter) *Cluster {
	return &Cluster{core, apps}
}

// Pods implements reaper.Cluster.
func (c *Cluster) Pods(ctx context.Context) ([]reaper.Pod, error) {
	return list(ctx, c.core.Pods(metav1.NamespaceAll).List, func(l *corev1.PodList) []corev1.Pod { return l.Items }, readPod)
}

// StatefulSets implements reaper.Cluster.
func (c *Cluster) StatefulSets(ctx context.Context) ([]reaper.StatefulSet, error) {
	return list(ctx, c.apps.StatefulSets(metav1.NamespaceAll).List, func(l *appsv1.StatefulSetList) []appsv1.StatefulSet { return l.Items }, readStatefulSet)
}

// Nodes implements reaper.Cluster.
func (c *Cluster) Nodes(ctx context.Context) ([]reaper.Node, error) {
	return list(ctx, c.core.Nodes().List, func(l *corev1.NodeList) []corev1.Node { return l.Items }, readNode)
}

// list reads every object of a list. Pages are reduced to what verdicts need as
// they come.
func list[L metav1.ListInterface, O, T any](ctx context.Context, request func(context.Context, metav1.ListOptions) (L, error),
	items func(L) []O, reduce func(*O) T,
) ([]T, error) {
	all, err := Pages(ctx, func(ctx context.Context, token string) ([]T, string, error) {
		page, err := request(ctx, metav1.ListOptions{Limit: pageSize, Continue: token})
		if err != nil {
			return nil, "", err
		}
		if page.GetResourceVersion() == "" {
			return nil, "", errNoList
		}
		objects := items(page)
		reduced := make([]T, len(objects))
		for i := range objects {
			reduced[i] = reduce(&objects[i])
		}
		return reduced, page.GetContinue(), nil
	})
	return all, answered(err)
}

// errNoList is an answer that is no list. client-go takes any object, and an
// empty one, for a list without items; a list of the API server has a version.
var errNoList = errors.New("the answer is no list: it has no resourceVersion")

// Pod implements reaper.Cluster.
func (c *Cluster) Pod(ctx context.Context, ref reaper.PodRef) (reaper.Pod, reaper.Presence, error) {
	pod, err := c.core.Pods(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		return readPod(pod), reaper.Present, nil
	case Gone(err, "pods", ref.Name):
		return reaper.Pod{}, reaper.Absent, nil
	default:
		return reaper.Pod{}, reaper.Unknown, answered(err)
	}
}
