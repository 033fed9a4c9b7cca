// Package kube is the API server's side of a run: the census, the ledger, the lock, the
// journals and the events. It also reads raw lists, and sorts the errors of the API
// server.
package kube

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// pageSize is the number of objects on one page of a list, as with kubectl.
const pageSize = 500

// Cluster reads pods, virtual machines, StatefulSets and nodes from the API server. It
// implements reaper.Cluster. Every read is a quorum read: requests have no
// resourceVersion, and nothing is cached.
type Cluster struct {
	core Core
	apps appsv1client.StatefulSetsGetter
	raw  rest.Interface
}

// Core is the part of the core API group that a Cluster reads.
type Core interface {
	corev1client.PodsGetter
	corev1client.NodesGetter
	RESTClient() rest.Interface
}

// NewCluster returns the cluster of the clients; raw is a RawClient. It does not take the
// clientset of all API groups, which makes the program 15 MB larger.
func NewCluster(core Core, apps appsv1client.StatefulSetsGetter, raw rest.Interface) *Cluster {
	return &Cluster{core, apps, raw}
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

// list reads every object of a list. It reduces the objects page by page, so that it
// does not hold all of them in full.
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

// errNoList is the error of an answer that is not a list. client-go takes any object,
// even an empty one, for a list without items. A real list has a resourceVersion.
var errNoList = errors.New("the answer is not a list: it has no resourceVersion")

// Pod implements reaper.Cluster. It makes one request. If the API server asks to come back
// later, the error says when: the client does not wait, because other pods are looked at
// in the same time.
func (c *Cluster) Pod(ctx context.Context, ref reaper.PodRef) (reaper.Pod, reaper.Presence, error) {
	pod := new(corev1.Pod)
	err := c.core.RESTClient().Get().Namespace(ref.Namespace).Resource("pods").Name(ref.Name).MaxRetries(0).Do(ctx).Into(pod)
	switch {
	case err == nil:
		return readPod(pod), reaper.Present, nil
	case Gone(err, "pods", ref.Name):
		return reaper.Pod{}, reaper.Absent, nil
	default:
		return reaper.Pod{}, reaper.Unknown, answered(err)
	}
}
